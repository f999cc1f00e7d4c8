//! Counters of a broker since its start.

use std::sync::atomic::AtomicU64;

/// The counters beside those of the vhosts.
#[derive(Debug, Default)]
pub struct Totals {
    pub(crate) connections_opened: AtomicU64,
    pub connections_closed: AtomicU64,
    pub(crate) connections_refused: AtomicU64,
}
