//! Attempts to log in: who has failed lately waits before the next one is looked at, without a
//! thread that waits.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crosstie_auth::{Admission, Attempts, Origin};
use crosstie_transport::Connection;
use parking_lot::Mutex;
use tokio::runtime::Handle;

use crate::door::origin;

/// The attempts of all of a router's AMQP clients.
pub(crate) struct Logins {
    attempts: Mutex<Attempts>,
    start: Instant,
    /// Where there are timers.
    pub(super) keeper: Handle,
    pub(crate) failed: AtomicU64,
    /// Attempts that were told to wait, or refused because too many do.
    pub(crate) delayed: AtomicU64,
}

/// An attempt that waits. Its place is free again when this is dropped.
pub(super) struct Waiting {
    logins: Arc<Logins>,
    origin: Origin,
    until: Instant,
}

/// As many attempts of its origin wait as may.
pub(super) struct Crowded;

impl Logins {
    pub(super) fn new(delay_max: Duration, keeper: Handle) -> Self {
        let delay_max_ms = u64::try_from(delay_max.as_millis()).unwrap_or(u64::MAX);
        Self {
            attempts: Mutex::new(Attempts::new(delay_max_ms)),
            start: Instant::now(),
            keeper,
            failed: AtomicU64::new(0),
            delayed: AtomicU64::new(0),
        }
    }

    /// A client wants to log in. One that has to wait for that is not read from meanwhile: what it
    /// said is offered again when it has waited.
    pub(super) fn begin(
        self: &Arc<Self>,
        connection: &Arc<Connection>,
    ) -> Result<Option<Waiting>, Crowded> {
        let origin = origin(connection.peer());
        let admission = self.attempts.lock().begin(self.now_ms(), origin);
        if admission != Admission::Now {
            self.delayed.fetch_add(1, Ordering::Relaxed);
        }
        let delay = match admission {
            Admission::Now => return Ok(None),
            Admission::After(delay_ms) => Duration::from_millis(delay_ms),
            Admission::Refused => return Err(Crowded),
        };
        let waiting = Waiting {
            logins: Arc::clone(self),
            origin,
            until: Instant::now() + delay,
        };
        connection.pause_reading();
        let connection = Arc::downgrade(connection);
        self.keeper.spawn(async move {
            tokio::time::sleep(delay).await;
            if let Some(connection) = connection.upgrade() {
                connection.resume_reading();
            }
        });
        Ok(Some(waiting))
    }

    /// A client was not let in.
    pub(super) fn note_failure(&self, connection: &Connection) {
        self.failed.fetch_add(1, Ordering::Relaxed);
        let origin = origin(connection.peer());
        self.attempts.lock().note_failure(self.now_ms(), origin);
    }

    fn now_ms(&self) -> u64 {
        self.start.elapsed().as_millis() as u64
    }
}

impl Waiting {
    /// Whether it has waited. One that closes its side is read to its end before that.
    pub(super) fn is_over(&self) -> bool {
        Instant::now() >= self.until
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.logins.attempts.lock().end_waiting(self.origin);
    }
}
