//! Counters of a broker since its start.

use std::sync::atomic::AtomicU64;

use parking_lot::Mutex;

use super::octets::Octets;

/// The counters beside those of the vhosts.
#[derive(Debug, Default)]
pub struct Totals {
    pub(crate) connections_opened: AtomicU64,
    pub connections_closed: AtomicU64,
    pub(crate) connections_refused: AtomicU64,
    /// The same as opened and closed, without the requests of the management API.
    pub(super) clients_opened: AtomicU64,
    pub(super) clients_closed: AtomicU64,
    /// Those of closed connections.
    pub(super) octets: Mutex<Octets>,
}
