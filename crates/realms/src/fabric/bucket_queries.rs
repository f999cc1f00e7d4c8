//! Queries of the bucket: many keys at a time, and one query after another for each key.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crosstie_fabric::Subjects;
use crosstie_jetstream::{Failed, Put, Register};
use parking_lot::Mutex;
use tokio::task::{Id, JoinSet};
use tokio::time;

use super::lease::{self, Lease, Renewals};

/// A key to be claimed, under that number, or given up.
pub(super) struct Asked {
    pub(super) key: String,
    pub(super) claim: Option<u64>,
    /// The time of the request.
    pub(super) since: Instant,
}

impl Asked {
    pub(super) fn now(key: String, claim: Option<u64>) -> Self {
        let since = Instant::now();
        Self { key, claim, since }
    }

    /// The time at which an unanswered claim is refused.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.claim.map(|_| self.since + CLAIM_TIME)
    }
}

/// Maximum duration of a claim without an answer. Servers elect a new leader within 4 to 9 seconds, and may do it twice.
const CLAIM_TIME: Duration = Duration::from_secs(20);

/// Maximum duration of a claim while another node holds the key. That node may give the key up soon, or may be dead: then
/// its lease is over within this time.
const HAD_TIME: Duration = Duration::from_secs(8);
const AGAIN: Duration = Duration::from_millis(100);

/// Lifetime of an empty entry that marks a key as given up.
const NOTHING_LIVES: Duration = Duration::from_secs(60);

/// Maximum number of concurrent queries.
const ASKED_MAX: usize = 64;

/// Running and waiting queries.
#[derive(Default)]
pub(super) struct Asking {
    tasks: JoinSet<Result<bool, Failed>>,
    /// The running queries, by their tasks.
    open: HashMap<Id, Asked>,
    /// The keys of the running queries.
    busy: BTreeSet<String>,
    /// The waiting queries of each key, in order. None of these lists is empty.
    waiting: BTreeMap<String, VecDeque<Asked>>,
    /// The keys with waiting queries and without a running one, in order.
    ready: VecDeque<String>,
}

impl Asking {
    pub(super) fn add(&mut self, asked: Asked) {
        let waiting = self.waiting.entry(asked.key.clone()).or_default();
        if waiting.is_empty() && !self.busy.contains(&asked.key) {
            self.ready.push_back(asked.key.clone());
        }
        waiting.push_back(asked);
    }

    /// Starts waiting queries, in order. A key with a running query holds up its next one, and no other.
    pub(super) fn begin(
        &mut self,
        register: &Register,
        subjects: &Subjects,
        (lease, renewals): (&Lease, &Arc<Mutex<Renewals>>),
    ) {
        while self.open.len() < ASKED_MAX
            && let Some(key) = self.ready.pop_front()
        {
            let Some(asked) = self.take_first(&key) else {
                continue;
            };
            let bucket = Bucket {
                register: register.clone(),
                subjects: subjects.clone(),
                lease: lease.name.clone(),
                lease_key: lease.key.clone(),
                renewals: Arc::clone(renewals),
            };
            let (claim, since) = (asked.claim, asked.since);
            let task = self.tasks.spawn(async move {
                match claim {
                    Some(_) => bucket.claim(&key, since).await,
                    None => bucket.give_up(&key).await,
                }
            });
            self.busy.insert(asked.key.clone());
            self.open.insert(task.id(), asked);
        }
    }

    /// The next finished query.
    pub(crate) async fn next(&mut self) -> Option<(Asked, Result<bool, Failed>)> {
        let (id, done) = match self.tasks.join_next_with_id().await? {
            Ok(done) => done,
            Err(failed) => (failed.id(), Err(Failed::Ended(failed.to_string()))),
        };
        let asked = self.open.remove(&id)?;
        self.busy.remove(&asked.key);
        if self.waiting.contains_key(&asked.key) {
            self.ready.push_back(asked.key.clone());
        }
        Some((asked, done))
    }

    /// Whether a query of the key runs or waits.
    pub(super) fn has(&self, key: &str) -> bool {
        self.busy.contains(key) || self.waiting.contains_key(key)
    }

    /// Takes the waiting claims whose time is over.
    pub(super) fn take_late(&mut self, now: Instant) -> Vec<Asked> {
        let mut late = Vec::new();
        self.waiting.retain(|_, waiting| {
            let is_late = |asked: &Asked| asked.deadline().is_some_and(|due| due <= now);
            let all = std::mem::take(waiting).into_iter();
            let (over, left): (VecDeque<_>, VecDeque<_>) = all.partition(is_late);
            late.extend(over);
            *waiting = left;
            !waiting.is_empty()
        });
        self.ready.retain(|key| self.waiting.contains_key(key));
        late
    }

    /// All unfinished queries.
    pub(super) fn take_all(mut self) -> impl Iterator<Item = Asked> {
        self.tasks.abort_all();
        let waiting = self.waiting.into_values().flatten();
        self.open.into_values().chain(waiting)
    }

    fn take_first(&mut self, key: &str) -> Option<Asked> {
        let waiting = self.waiting.get_mut(key)?;
        let first = waiting.pop_front();
        if waiting.is_empty() {
            self.waiting.remove(key);
        }
        first
    }
}

/// The bucket, as one query uses it.
struct Bucket {
    register: Register,
    subjects: Subjects,
    /// This node's lease.
    lease: String,
    lease_key: String,
    renewals: Arc<Mutex<Renewals>>,
}

impl Bucket {
    /// Claims a key for this lease, unless another valid lease holds it.
    async fn claim(&self, key: &str, since: Instant) -> Result<bool, Failed> {
        let begun = Instant::now();
        // A name that is too long has no key.
        if key.is_empty() {
            return Ok(false);
        }
        loop {
            let (tried, is_over) = match self.try_claim(key).await {
                Ok(true) => return Ok(true),
                Ok(false) => (Ok(false), begun.elapsed() > HAD_TIME),
                Err(failed) => (Err(failed), since.elapsed() > CLAIM_TIME),
            };
            if is_over {
                return tried;
            }
            time::sleep(AGAIN).await;
        }
    }

    async fn try_claim(&self, key: &str) -> Result<bool, Failed> {
        let after = match self.register.get(key).await? {
            None => 0,
            // Its own key is written again: an earlier query that gives it up may still be under way.
            Some((sequence, owner)) if owner.is_empty() || owner == self.lease.as_bytes() => {
                sequence
            }
            Some((sequence, owner)) => {
                let owner = String::from_utf8_lossy(&owner);
                if !self.has_ended(&self.subjects.of_lease(&owner)).await? {
                    return Ok(false);
                }
                sequence
            }
        };
        let lease = self.lease.as_bytes();
        let put = self.register.put(key, after, lease, None).await?;
        Ok(matches!(put, Put::Done(_)))
    }

    /// Whether another lease has ended. Ends it if it is over: its node then cannot renew it.
    async fn has_ended(&self, key: &str) -> Result<bool, Failed> {
        let Some((sequence, value)) = self.register.get(key).await? else {
            return Ok(true);
        };
        if lease::is_ended(&value) {
            return Ok(true);
        }
        let now = Instant::now();
        if !self.renewals.lock().prove_over(sequence, &value, now) {
            return Ok(false);
        }
        // In a stream that was wiped, sequences begin anew. It does not have this node's lease.
        if self.register.get(&self.lease_key).await?.is_none() {
            return Ok(false);
        }
        let put = self.register.put(key, sequence, b"", Some(lease::LIVES));
        Ok(matches!(put.await?, Put::Done(_)))
    }

    /// Gives a key up, if this lease holds it.
    async fn give_up(&self, key: &str) -> Result<bool, Failed> {
        match self.register.get(key).await? {
            Some((sequence, owner)) if owner == self.lease.as_bytes() => {
                let put = self.register.put(key, sequence, b"", Some(NOTHING_LIVES));
                Ok(matches!(put.await?, Put::Done(_)))
            }
            _ => Ok(false),
        }
    }
}
