//! Login attempts: delays the answer to a wrong password, and makes attempts wait for their turn without blocking a
//! thread. [`Guesses`] describes the rules.

use std::borrow::Cow;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crosstie_auth::{Guess, Guesses};
use crosstie_front::addresses::origin;
use crosstie_transport::Connection;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::task::AbortHandle;

use super::backends::NotLoggedIn;

/// The login attempts of all AMQP clients of a router.
pub(crate) struct Logins {
    guesses: Mutex<Guesses>,
    start: Instant,
    /// Randomly keyed, so that a client cannot predict which passwords have equal hashes.
    keyed: RandomState,
    /// The runtime that has timers.
    pub(super) keeper: Handle,
    pub failed: AtomicU64,
    /// Those of the management API.
    pub(super) failed_http: AtomicU64,
    /// Number of attempts with a delayed answer, and of attempts that waited to be checked.
    pub(crate) delayed: AtomicU64,
}

/// A waiting attempt. Reading from its connection is paused; afterwards its login is handled again.
pub(super) struct Waiting {
    until: Instant,
    pub(super) for_what: For,
}

/// The purpose of a wait.
pub(super) enum For {
    /// The credentials may be checked; the attempt fails if it has no place at `last`.
    Place { last: Instant },
    /// The client gets its refusal.
    Answer,
}

/// Delay of a refusal for want of an answer: its client is likely to try again at once.
const UNANSWERED_DELAY: Duration = Duration::from_secs(1);

/// Interval at which a waiting attempt asks for its turn.
pub(super) const PLACE_INTERVAL: Duration = Duration::from_millis(100);

impl Logins {
    pub(crate) fn new(delay_max: Duration, keeper: Handle) -> Self {
        let delay_max_ms = u64::try_from(delay_max.as_millis()).unwrap_or(u64::MAX);
        Self {
            guesses: Mutex::new(Guesses::new(delay_max_ms)),
            start: Instant::now(),
            keyed: RandomState::new(),
            keeper,
            failed: AtomicU64::new(0),
            failed_http: AtomicU64::new(0),
            delayed: AtomicU64::new(0),
        }
    }

    /// The account that a guess is for. A client with a token sends no name as a rule: all of these would share one account,
    /// and wrong tokens of some machines would hold up right ones of others. So each machine has its own.
    pub(super) fn account<'n>(connection: &Connection, name: &'n str) -> Cow<'n, str> {
        match name {
            "" => format!("\0{:?}", origin(connection.peer())).into(),
            name => name.into(),
        }
    }

    /// The guess that a client makes with a password.
    pub(super) fn guess<'g>(
        &self,
        connection: &Connection,
        name: &'g str,
        password: &[u8],
    ) -> Guess<'g> {
        let origin = origin(connection.peer());
        Guess {
            origin,
            authid: name,
            credentials: Some(self.keyed.hash_one((origin, name, password))),
        }
    }

    pub(super) fn may_look(&self, guess: Guess<'_>) -> bool {
        self.guesses.lock().may_look(self.now_ms(), guess)
    }

    pub(super) fn note_right(&self, guess: Guess<'_>) {
        self.guesses.lock().note_right(self.now_ms(), guess);
    }

    /// Notes a wrong password. Returns the delay of its answer.
    fn note_wrong(&self, guess: Guess<'_>) -> Duration {
        Duration::from_millis(self.guesses.lock().note_wrong(self.now_ms(), guess))
    }

    /// Notes a refused login. Returns the delay of its answer. A server that has not answered says nothing about the
    /// password.
    pub(super) fn note_refused(&self, guess: Guess<'_>, refused: &NotLoggedIn) -> Duration {
        self.failed.fetch_add(1, Ordering::Relaxed);
        match refused.is_guess {
            true => self.note_wrong(guess),
            false => UNANSWERED_DELAY,
        }
    }

    /// Makes an attempt wait for its turn, from `before` or from now on; `None` if it has waited long enough.
    pub(super) fn await_place(
        &self,
        connection: &Arc<Connection>,
        before: Option<For>,
    ) -> Option<Waiting> {
        let now = Instant::now();
        let last = match before {
            Some(For::Place { last }) => last,
            _ => {
                self.delayed.fetch_add(1, Ordering::Relaxed);
                now + Duration::from_millis(Guesses::PLACE_WAIT_MAX_MS)
            }
        };
        let left = last.saturating_duration_since(now);
        (!left.is_zero())
            .then(|| self.wait(connection, left.min(PLACE_INTERVAL), For::Place { last }))
    }

    /// Delays a client's refusal; `None` if the client has waited as long as `before` already.
    pub(super) fn answer_later(
        &self,
        connection: &Arc<Connection>,
        delay: Duration,
        before: Option<For>,
    ) -> Option<Waiting> {
        let longest = Duration::from_millis(Guesses::PLACE_WAIT_MAX_MS);
        let waited = match before {
            Some(For::Place { last }) => {
                longest.saturating_sub(last.saturating_duration_since(Instant::now()))
            }
            _ => Duration::ZERO,
        };
        let delay = delay.saturating_sub(waited);
        if delay.is_zero() {
            return None;
        }
        self.delayed.fetch_add(1, Ordering::Relaxed);
        Some(self.wait(connection, delay, For::Answer))
    }

    /// Runs `outcome` on the keeper's thread. Reading from the connection is paused meanwhile.
    pub(super) fn later<T: Send + 'static>(
        &self,
        connection: &Arc<Connection>,
        outcome: impl Future<Output = T> + Send + 'static,
    ) -> Later<T> {
        connection.pause_reading();
        let connection = Arc::downgrade(connection);
        let place = Arc::new(Mutex::new(None));
        let filled = Arc::clone(&place);
        let task = self.keeper.spawn(async move {
            let outcome = outcome.await;
            *filled.lock() = Some(outcome);
            if let Some(connection) = connection.upgrade() {
                connection.resume_reading();
            }
        });
        Later {
            place,
            task: task.abort_handle(),
        }
    }

    fn wait(&self, connection: &Arc<Connection>, delay: Duration, for_what: For) -> Waiting {
        connection.pause_reading();
        let connection = Arc::downgrade(connection);
        self.keeper.spawn(async move {
            tokio::time::sleep(delay).await;
            if let Some(connection) = connection.upgrade() {
                connection.resume_reading();
            }
        });
        Waiting {
            until: Instant::now() + delay,
            for_what,
        }
    }

    fn now_ms(&self) -> u64 {
        self.start.elapsed().as_millis() as u64
    }
}

/// An outcome that a client waits for. It is given up with this.
pub(super) struct Later<T> {
    place: Arc<Mutex<Option<T>>>,
    task: AbortHandle,
}

impl<T> Later<T> {
    /// The outcome; `None` if it is not there. A client that closes its side first is read to its end.
    pub(super) fn take(&self) -> Option<T> {
        self.place.lock().take()
    }
}

impl<T> Drop for Later<T> {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Waiting {
    /// Whether the wait is over. A client that closes its side first is read to its end.
    pub(super) fn is_over(&self) -> bool {
        Instant::now() >= self.until
    }
}
