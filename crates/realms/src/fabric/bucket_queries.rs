//! Queries of the bucket: many keys at a time, and one query after another for each key.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use crosstie_fabric::Subjects;
use crosstie_jetstream::{Failed, Put, Register};
use tokio::task::JoinSet;
use tokio::time;

/// A node's lease.
pub(super) struct Lease {
    pub name: String,
    pub(super) key: String,
    /// The sequence of its last renewal; 0 before the first.
    pub(super) sequence: u64,
}

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

/// Maximum duration of a claim while another node holds the key, which that node may give up soon.
const HAD_TIME: Duration = Duration::from_secs(2);
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
    pub(super) fn begin(&mut self, register: &Register, subjects: &Subjects, lease: &Lease) {
        while self.open.len() < ASKED_MAX
            && let Some(asked) = self
                .line
                .pop_front_if(|next| !self.open.contains_key(&next.key))
        {
            let Asked { key, claim, since } = asked;
            self.open.insert(key.clone(), (claim, since));
            let (register, lease) = (register.clone(), lease.name.clone());
            let subjects = subjects.clone();
            self.tasks.spawn(async move {
                let done = match claim {
                    Some(_) => claimed(&register, &subjects, &key, (&lease, since)).await,
                    None => given_up(&register, &key, &lease).await,
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

/// Claims a key for this lease, unless another valid lease holds it.
async fn claimed(
    register: &Register,
    subjects: &Subjects,
    key: &str,
    (lease, since): (&str, Instant),
) -> Result<bool, Failed> {
    let begun = Instant::now();
    // A name that is too long has no key.
    if key.is_empty() {
        return Ok(false);
    }
    loop {
        let (tried, is_over) = match try_claim(register, subjects, key, lease).await {
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

async fn try_claim(
    register: &Register,
    subjects: &Subjects,
    key: &str,
    lease: &str,
) -> Result<bool, Failed> {
    let after = match register.get(key).await? {
        None => 0,
        Some((_, owner)) if owner == lease.as_bytes() => return Ok(true),
        Some((sequence, owner)) if owner.is_empty() => sequence,
        Some((sequence, owner)) => {
            let owner = String::from_utf8_lossy(&owner);
            let lease = register.get(&subjects.of_lease(&owner)).await?;
            // A node that stops in order leaves an empty one.
            if lease.is_some_and(|(_, name)| !name.is_empty()) {
                return Ok(false);
            }
            sequence
        }
    };
    let put = register.put(key, after, lease.as_bytes(), None).await?;
    Ok(matches!(put, Put::Done(_)))
}

/// Gives a key up, if this lease holds it.
async fn given_up(register: &Register, key: &str, lease: &str) -> Result<bool, Failed> {
    match register.get(key).await? {
        Some((sequence, owner)) if owner == lease.as_bytes() => {
            let put = register.put(key, sequence, b"", Some(NOTHING_LIVES));
            Ok(matches!(put.await?, Put::Done(_)))
        }
        _ => Ok(false),
    }
}
