//! When something behind a lock has to be looked at by itself: a realm's calls, a vhost's expiries.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use tokio::sync::Notify;

/// The next look of one task, which anybody may make earlier.
#[derive(Debug)]
pub(crate) struct Timer {
    /// In its owner's time; [`Timer::NEVER`] while there is nothing to look for.
    at: AtomicU64,
    changed: Notify,
}

impl Timer {
    pub(crate) const NEVER: u64 = u64::MAX;

    pub(crate) fn new(at: u64) -> Self {
        Self {
            at: AtomicU64::new(at),
            changed: Notify::new(),
        }
    }

    /// Sees to it that the next look is no later than `at`.
    pub(crate) fn arm(&self, at: u64) {
        if at < self.at.load(Ordering::Relaxed) {
            self.at.fetch_min(at, Ordering::Relaxed);
            self.changed.notify_one();
        }
    }

    /// Says when the next look is, after one. Under the lock of what was looked at, so that a caller
    /// that makes something due earlier from now on arms the timer after this.
    pub(crate) fn set(&self, at: u64) {
        self.at.store(at, Ordering::Relaxed);
    }

    /// Has the task see what else has changed, such as that there is nothing to keep time for any more.
    pub(crate) fn wake(&self) {
        self.changed.notify_one();
    }

    /// Waits for the next look; whether it is due, or something has changed.
    pub(crate) async fn wait(&self, instant: impl FnOnce(u64) -> Instant) -> bool {
        let at = self.at.load(Ordering::Relaxed);
        if at == Self::NEVER {
            self.changed.notified().await;
            return false;
        }
        tokio::select! {
            () = tokio::time::sleep_until(instant(at).into()) => true,
            () = self.changed.notified() => false,
        }
    }
}
