//! What a copy lacks that is being filled.

use std::collections::BTreeSet;

use crosstie_queues::QueueId;

/// The messages of extents from before the filling, that only the log has.
#[derive(Clone, Debug)]
pub(crate) struct Missing {
    /// The queues that were deep when the filling began.
    pub(crate) queues: BTreeSet<QueueId>,
    /// The last extent that the copy has, and the last one from before the filling.
    pub(crate) behind: u64,
    pub(crate) until: u64,
}
