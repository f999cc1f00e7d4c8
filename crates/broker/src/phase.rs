//! Whether a vhost is open to clients, closed, or deleted.

use std::sync::atomic::{AtomicBool, Ordering};

/// Whether clients may enter a vhost.
#[derive(Default)]
pub(super) struct Phase {
    is_closed: AtomicBool,
    /// Its last record is submitted. Written under the vhost's lock.
    is_deleted: AtomicBool,
}

impl Phase {
    pub(super) fn is_open(&self) -> bool {
        !self.is_closed.load(Ordering::SeqCst)
    }

    pub(super) fn is_deleted(&self) -> bool {
        self.is_deleted.load(Ordering::SeqCst)
    }

    pub(super) fn set_open(&self, is_open: bool) {
        self.is_closed.store(!is_open, Ordering::SeqCst);
    }

    pub(super) fn set_deleted(&self) {
        self.is_deleted.store(true, Ordering::SeqCst);
    }
}
