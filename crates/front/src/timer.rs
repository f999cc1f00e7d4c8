//! The next due time of an object behind a lock: a realm's calls, a vhost's expiries.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use tokio::sync::Notify;

/// The next due time of one task, which any thread may make earlier.
#[derive(Debug)]
pub struct Timer {
    /// In its owner's time; [`Timer::NEVER`] if nothing is due.
    at: AtomicU64,
    changed: Notify,
}

impl Timer {
    pub const NEVER: u64 = u64::MAX;

    pub fn new(at: u64) -> Self {
        Self {
            at: AtomicU64::new(at),
            changed: Notify::new(),
        }
    }

    /// Makes the next due time no later than `at`.
    #[inline]
    pub fn arm(&self, at: u64) {
        if at < self.at.load(Ordering::Relaxed) {
            self.at.fetch_min(at, Ordering::Relaxed);
            self.changed.notify_one();
        }
    }

    /// Sets the next due time after a run. Called under the object's lock, so that a caller that makes something due
    /// earlier arms the timer after this.
    #[inline]
    pub fn set(&self, at: u64) {
        self.at.store(at, Ordering::Relaxed);
    }

    /// Wakes the task for other changes, such as the end of its object.
    pub fn wake(&self) {
        self.changed.notify_one();
    }

    /// Waits for the next due time. Returns whether it has come, or something else has changed.
    pub async fn wait(&self, instant: impl FnOnce(u64) -> Instant) -> bool {
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
