//! Entries in flight to the log.

use std::sync::Arc;

use crosstie_queues::Position;

use crate::entry::Kind;

/// An entry that is not acknowledged.
#[derive(Clone, Debug)]
pub(crate) struct InFlight {
    pub sequence: u64,
    pub entry: Arc<[u8]>,
    /// Committed with it: the last part of a batch has it.
    pub position: Option<Position>,
    pub kind: Kind,
}
