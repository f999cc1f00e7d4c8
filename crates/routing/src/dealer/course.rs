//! A call of this node's on its way through callees of all nodes.

use super::new_call::{CALLEES_TRIED_MAX, NewCall};
use crate::across::Journey;

/// Nodes that one call is sent to at most.
const NODES_TRIED_MAX: usize = 8;

/// The call as it came, and what it has met since.
pub(super) struct Course<'m> {
    pub(super) new: NewCall<'m>,
    pub(super) journey: Journey<'static>,
}

impl Course<'_> {
    /// How many callees have had the next one asked.
    pub(super) fn asked(&self) -> usize {
        self.journey.asked as usize + self.new.tried.len()
    }

    /// Whether one more may be asked, and one more node.
    pub(super) fn may_go_on(&self) -> bool {
        self.asked() < CALLEES_TRIED_MAX && self.journey.tried.len() < NODES_TRIED_MAX
    }

    /// The last callee that was offered it, by its number and whose it is.
    pub(super) fn place(&self, is_last: bool) -> Option<(u64, u64)> {
        let stretch = self.journey.stretch?;
        let incarnation = self.journey.tried.last().copied()?;
        let number = if is_last { stretch.low } else { stretch.high };
        Some((number, incarnation))
    }
}
