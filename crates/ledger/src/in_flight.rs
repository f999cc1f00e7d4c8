//! Entries in flight to the log.

use std::sync::Arc;

use crosstie_queues::Position;

use crate::entry::Kind;

/// An entry that is not acknowledged. Its place in the log follows from its place among these.
#[derive(Clone, Debug)]
pub(crate) struct InFlight {
    pub entry: Arc<[u8]>,
    /// Committed with it: the last part of a batch has it.
    pub position: Option<Position>,
    pub kind: Kind,
    pub batch: u64,
    /// Its number in the batch.
    pub part: u32,
    /// The batch is complete with this part.
    pub is_last: bool,
    /// The log has acknowledged it, and not yet an earlier one.
    pub is_answered: bool,
}
