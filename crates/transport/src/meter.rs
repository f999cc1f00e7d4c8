//! How much went through a set of sockets.

use std::sync::atomic::{AtomicU64, Ordering};

/// Octets received from and sent to the sockets of the connections that carry it.
#[derive(Debug, Default)]
pub struct Meter {
    received_bytes: AtomicU64,
    sent_bytes: AtomicU64,
}

impl Meter {
    pub fn received_bytes(&self) -> u64 {
        self.received_bytes.load(Ordering::Relaxed)
    }

    pub fn sent_bytes(&self) -> u64 {
        self.sent_bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn add_received(&self, count: usize) {
        self.received_bytes
            .fetch_add(count as u64, Ordering::Relaxed);
    }

    pub(crate) fn add_sent(&self, count: usize) {
        self.sent_bytes.fetch_add(count as u64, Ordering::Relaxed);
    }
}
