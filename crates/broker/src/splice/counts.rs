//! The counters of clients that another node serves.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counters over all vhosts of a broker.
#[derive(Debug, Default)]
pub struct Splices {
    /// Number of clients currently spliced to other nodes.
    pub open: AtomicU64,
    pub opened: AtomicU64,
    /// Number of clients refused because their vhost has no owner, or its owner accepts no spliced clients.
    pub refused: AtomicU64,
    /// Bytes relayed from clients to owners.
    pub sent_bytes: AtomicU64,
    /// Bytes relayed from owners to clients.
    pub received_bytes: AtomicU64,
    /// Number of peers on a cluster listener that failed to prove that they are nodes of the vhost.
    pub strangers: AtomicU64,
}

impl Splices {
    pub fn count(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }
}
