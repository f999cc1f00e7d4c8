//! What is under way to the log.

use std::sync::Arc;

use crosstie_queues::Position;

use crate::entry::Kind;

/// An entry that is not acknowledged.
#[derive(Clone, Debug)]
pub(crate) struct Pending {
    pub sequence: u64,
    pub entry: Arc<[u8]>,
    /// Told when it is: the last part of a batch has it.
    pub position: Option<Position>,
    pub kind: Kind,
}
