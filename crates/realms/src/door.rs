//! Pending handshakes and wrong credentials: counts and limits them.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use crosstie_auth::wamp::{Cause, Method};
use crosstie_auth::{Guess, Guesses};
use crosstie_front::addresses::origin;
use crosstie_transport::Connection;
use parking_lot::Mutex;
use tokio::runtime::Handle;

use crate::audit::Audit;
use crate::elsewhere::{Outcome, Slot};
use crate::key_derivation::Deriving;
use crate::live_methods::LiveMethods;

/// The state shared by all handshakes of a router.
pub struct Door {
    guesses: Mutex<Guesses>,
    start: Instant,
    /// Randomly keyed, so that a client cannot predict which credentials have equal hashes.
    keyed: RandomState,
    pending: Arc<AtomicUsize>,
    pending_max: usize,
    refused: [AtomicU64; Cause::ALL.len()],
    /// Number of successful and failed fetches of issuers' keys.
    keys_fetched: AtomicU64,
    keys_failed: AtomicU64,
    /// The listeners whose principals or keys cannot be read again.
    outdated: Mutex<Vec<Outdated>>,
    /// The runtime that has timers.
    keeper: Handle,
    deriving: Deriving,
    audit: Option<Arc<Audit>>,
}

/// A refused client.
pub struct Refused<'r> {
    pub connection: &'r Connection,
    pub cause: Cause,
    /// The reason for the client.
    pub reason: &'r str,
    /// The requested authid and realm.
    pub authid: &'r str,
    /// [`Guess::credentials`].
    pub credentials: Option<u64>,
    pub realm: &'r str,
    /// If a method was chosen.
    pub method: Option<Method>,
}

/// A source of principals or keys that cannot be read again; what was read before is in force.
struct Outdated {
    of: Weak<LiveMethods>,
    source: String,
    why: String,
}

/// A place among the pending handshakes.
pub struct Place(Arc<AtomicUsize>);

impl Outdated {
    fn is_in_use(&self) -> bool {
        self.of.upgrade().is_some_and(|of| !of.is_replaced())
    }
}

impl Door {
    pub fn new(
        pending_max: usize,
        delay_max: Duration,
        handshake_timeout: Duration,
        keeper: Handle,
        audit: Option<Arc<Audit>>,
    ) -> Self {
        let delay_max_ms = u64::try_from(delay_max.as_millis()).unwrap_or(u64::MAX);
        Self {
            guesses: Mutex::new(Guesses::new(delay_max_ms)),
            start: Instant::now(),
            keyed: RandomState::new(),
            pending: Arc::default(),
            pending_max,
            refused: [const { AtomicU64::new(0) }; Cause::ALL.len()],
            keys_fetched: AtomicU64::new(0),
            keys_failed: AtomicU64::new(0),
            outdated: Mutex::default(),
            keeper,
            deriving: Deriving::new(handshake_timeout),
            audit,
        }
    }

    /// A place for another handshake, unless the maximum is reached.
    pub fn enter(&self) -> Option<Place> {
        let place = Place(Arc::clone(&self.pending));
        let before = place.0.fetch_add(1, Ordering::Relaxed);
        (before < self.pending_max).then_some(place)
    }

    /// Number of pending handshakes.
    pub fn pending(&self) -> usize {
        self.pending.load(Ordering::Relaxed)
    }

    /// Whether so many handshakes are pending that none may wait long for a user.
    pub fn is_crowded(&self) -> bool {
        self.pending() > self.pending_max / 2
    }

    pub fn pending_max(&self) -> usize {
        self.pending_max
    }

    /// A client's attempt; `secret` if its method sends a reusable secret.
    pub fn guess<'g>(
        &self,
        connection: &Connection,
        authid: &'g str,
        secret: Option<&str>,
    ) -> Guess<'g> {
        let origin = origin(connection.peer());
        let hash = |secret| self.keyed.hash_one((origin, authid, secret));
        Guess {
            origin,
            authid,
            credentials: secret.map(hash),
        }
    }

    /// Whether an attempt's credentials may be checked.
    pub(crate) fn may_look(&self, guess: Guess<'_>) -> bool {
        self.guesses.lock().may_look(self.now_ms(), guess)
    }

    pub(crate) fn note_right(&self, guess: Guess<'_>) {
        self.guesses.lock().note_right(self.now_ms(), guess);
    }

    /// Counts a refused client. Returns the delay of the answer, if the client may be guessing.
    pub(crate) fn note_refused(&self, refused: &Refused<'_>) -> Duration {
        self.refused[refused.cause as usize].fetch_add(1, Ordering::Relaxed);
        if let Some(audit) = &self.audit {
            audit.note(&[
                ("event", "session_refused"),
                ("cause", refused.cause.name()),
                ("reason", refused.reason),
                ("peer", &refused.connection.peer().to_string()),
                ("realm", refused.realm),
                ("authid", refused.authid),
                ("authmethod", refused.method.map_or("", Method::name)),
            ]);
        }
        if !refused.cause.is_guess() {
            return Duration::ZERO;
        }
        let now_ms = self.now_ms();
        let guess = Guess {
            origin: origin(refused.connection.peer()),
            authid: refused.authid,
            credentials: refused.credentials,
        };
        Duration::from_millis(self.guesses.lock().note_wrong(now_ms, guess))
    }

    /// Number of clients refused for that cause.
    pub fn refused(&self, cause: Cause) -> u64 {
        self.refused[cause as usize].load(Ordering::Relaxed)
    }

    /// Counts a fetch of an issuer's keys: whether the keys changed, or why it failed.
    pub(crate) fn note_keys(&self, url: &str, answer: Result<bool, &str>) {
        let (event, reason) = match answer {
            Ok(_) => ("keys_fetched", ""),
            Err(why) => ("keys_not_fetched", why),
        };
        match answer {
            Ok(is_new) => {
                self.keys_fetched.fetch_add(1, Ordering::Relaxed);
                if !is_new {
                    return;
                }
                tracing::info!("the keys of {url} have changed");
            }
            Err(why) => {
                self.keys_failed.fetch_add(1, Ordering::Relaxed);
                tracing::warn!(
                    "cannot fetch the keys of {url}, the previous ones stay in force: {why}"
                );
            }
        }
        if let Some(audit) = &self.audit {
            audit.note(&[("event", event), ("url", url), ("reason", reason)]);
        }
    }

    /// Notes whether a listener's source could be read again.
    pub(crate) fn note_read(&self, of: &Arc<LiveMethods>, source: &str, read: Result<(), &str>) {
        let mut outdated = self.outdated.lock();
        outdated.retain(|each| {
            let is_this = each.of.as_ptr() == Arc::as_ptr(of) && each.source == source;
            !is_this && each.is_in_use()
        });
        if let Err(why) = read {
            outdated.push(Outdated {
                of: Arc::downgrade(of),
                source: source.to_owned(),
                why: why.to_owned(),
            });
        }
    }

    /// The sources of principals and keys that cannot be read again, one text for each.
    pub fn outdated(&self) -> Vec<String> {
        let outdated = self.outdated.lock();
        let in_use = outdated.iter().filter(|each| each.is_in_use());
        let mut texts: Vec<_> = in_use
            .map(|Outdated { source, why, .. }| {
                format!("principals or keys of {source} cannot be read, those read before are in force: {why}")
            })
            .collect();
        // Several listeners may have one source.
        texts.sort_unstable();
        texts.dedup();
        texts
    }

    /// Number of successful and of failed fetches of issuers' keys.
    pub fn keys_fetches(&self) -> (u64, u64) {
        let [fetched, failed] =
            [&self.keys_fetched, &self.keys_failed].map(|count| count.load(Ordering::Relaxed));
        (fetched, failed)
    }

    /// Fills `slot` after that time.
    pub(crate) fn fill_after(&self, delay: Duration, slot: &Arc<Slot>, outcome: Outcome) {
        let slot = Arc::downgrade(slot);
        self.keeper.spawn(async move {
            tokio::time::sleep(delay).await;
            if let Some(slot) = slot.upgrade() {
                slot.fill(outcome);
            }
        });
    }

    /// Fills `slot` with the result of `work`, on a thread that may be slow.
    pub(crate) fn fill_with(
        &self,
        slot: &Arc<Slot>,
        work: impl Fn() -> Outcome + Send + Sync + 'static,
    ) {
        self.deriving.fill_with(&self.keeper, slot, work);
    }

    pub fn keeper(&self) -> &Handle {
        &self.keeper
    }

    fn now_ms(&self) -> u64 {
        self.start.elapsed().as_millis() as u64
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
