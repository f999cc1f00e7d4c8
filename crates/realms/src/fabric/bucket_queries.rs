//! Queries of the bucket: many keys at a time, and one query after another for each key.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crosstie_fabric::Subjects;
use crosstie_jetstream::{Failed, Put, Register};
use parking_lot::Mutex;
use tokio::task::JoinSet;
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
    tasks: JoinSet<(String, Result<bool, Failed>)>,
    /// The keys of the running tasks.
    open: BTreeMap<String, (Option<u64>, Instant)>,
    line: VecDeque<Asked>,
}

impl Asking {
    pub(super) fn add(&mut self, asked: Asked) {
        self.line.push_back(asked);
    }

    /// Starts waiting queries, in order. A key with a running query holds up its next one, and those behind that.
    pub(super) fn begin(
        &mut self,
        register: &Register,
        subjects: &Subjects,
        (lease, renewals): (&Lease, &Arc<Mutex<Renewals>>),
    ) {
        while self.open.len() < ASKED_MAX
            && let Some(asked) = self
                .line
                .pop_front_if(|next| !self.open.contains_key(&next.key))
        {
            let Asked { key, claim, since } = asked;
            self.open.insert(key.clone(), (claim, since));
            let bucket = Bucket {
                register: register.clone(),
                subjects: subjects.clone(),
                lease: lease.name.clone(),
                lease_key: lease.key.clone(),
                renewals: Arc::clone(renewals),
            };
            self.tasks.spawn(async move {
                let done = match claim {
                    Some(_) => bucket.claim(&key, since).await,
                    None => bucket.give_up(&key).await,
                };
                (key, done)
            });
        }
    }

    /// The next finished query.
    pub(crate) async fn next(&mut self) -> Option<(Asked, Result<bool, Failed>)> {
        let (key, done) = self.tasks.join_next().await?.ok()?;
        let (claim, since) = self.open.remove(&key)?;
        Some((Asked { key, claim, since }, done))
    }

    /// All unfinished queries.
    pub(super) fn take_all(mut self) -> impl Iterator<Item = Asked> {
        self.tasks.abort_all();
        let open = self.open.into_iter();
        let open = open.map(|(key, (claim, since))| Asked { key, claim, since });
        open.chain(self.line)
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
            Some((_, owner)) if owner == self.lease.as_bytes() => return Ok(true),
            Some((sequence, owner)) if owner.is_empty() => sequence,
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
