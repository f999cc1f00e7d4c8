//! The number of holders of bytes that several share, so that they count once as memory.

use std::sync::atomic::{AtomicU32, Ordering};

/// Changed only under the lock of the vhost's owner.
#[derive(Debug, Default)]
pub(crate) struct Holders(AtomicU32);

impl Holders {
    /// Adds one; returns whether it is the first.
    #[inline]
    pub(crate) fn add(&self) -> bool {
        let holders = self.0.load(Ordering::Relaxed);
        self.0.store(holders.saturating_add(1), Ordering::Relaxed);
        holders == 0
    }

    pub(crate) fn is_any(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 0
    }

    /// Removes one; returns whether it was the last.
    #[inline]
    pub(crate) fn remove(&self) -> bool {
        let holders = self.0.load(Ordering::Relaxed);
        self.0.store(holders.saturating_sub(1), Ordering::Relaxed);
        holders == 1
    }
}
