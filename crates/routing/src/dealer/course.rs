//! The way of a call through callees of all nodes.

use super::new_call::{CALLEES_TRIED_MAX, NewCall};
use crate::across::Journey;

/// Maximum number of nodes that one call is sent to.
const NODES_TRIED_MAX: usize = 8;

/// The call as it arrived, and its journey since.
pub(super) struct Course<'m> {
    pub(super) new: NewCall<'m>,
    pub(super) journey: Journey<'static>,
}

impl Course<'_> {
    /// How many callees rerouted it.
    pub(super) fn asked(&self) -> usize {
        self.journey.asked as usize + self.new.tried.len()
    }

    /// Whether another callee and another node may be tried.
    pub(super) fn may_go_on(&self) -> bool {
        self.asked() < CALLEES_TRIED_MAX && self.journey.tried.len() < NODES_TRIED_MAX
    }

    /// The last callee that it was offered to, by its number and its node.
    pub(super) fn place(&self, is_last: bool) -> Option<(u64, u64)> {
        let stretch = self.journey.stretch?;
        let incarnation = self.journey.tried.last().copied()?;
        let number = if is_last { stretch.low } else { stretch.high };
        Some((number, incarnation))
    }
}
