//! Other nodes' parts in a registration, and this node's pending callees, which others do not know of yet.

use crosstie_wamp::{InvocationPolicy, SessionId};

use super::callees::Callee;
use crate::across::Listed;
use crate::party::NeighbourIndex;

/// State beside the callees of this node; absent if empty.
#[derive(Debug, Default)]
pub(super) struct Parts {
    /// Other nodes' parts, in the order of their first callees.
    pub(super) elsewhere: Vec<Elsewhere>,
    /// Callees that have not been sent REGISTERED, in the order of their numbers: they are not called.
    pub(super) pending: Vec<Callee>,
    /// The turn among the callees of all nodes.
    pub(super) turn: u64,
    /// This node's callee is the only one while the node's lease lasts.
    pub(super) is_leased: bool,
    /// The last session among the parts that ended without an announcement.
    pub(super) untold: Option<SessionId>,
    /// Whether a node has announced that the registration ended: later withdrawals announce nothing.
    pub(super) is_told: bool,
}

/// Another node's part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Elsewhere {
    pub(super) node: NeighbourIndex,
    pub(super) incarnation: u64,
    pub(super) policy: InvocationPolicy,
    pub(super) callees: u32,
    pub(super) claim: u64,
    pub(super) first: u64,
    pub(super) last: u64,
    /// In the order of their numbers.
    pub(super) listed: Box<[Listed]>,
}

impl Elsewhere {
    /// The place of its callees among those of all nodes.
    pub(super) fn place(&self) -> (u64, u64) {
        (self.first, self.incarnation)
    }
}

impl Parts {
    pub(super) fn is_empty(&self) -> bool {
        self.elsewhere.is_empty() && self.pending.is_empty() && !self.is_leased
    }

    /// Replaces a node's part; returns the one before.
    pub(super) fn put(&mut self, part: Elsewhere) -> Option<Elsewhere> {
        let mut parts = self.elsewhere.iter();
        let before = parts.position(|known| known.node == part.node);
        let before = before.map(|place| self.elsewhere.remove(place));
        let is_before = |known: &Elsewhere| known.place() < part.place();
        let place = self.elsewhere.partition_point(is_before);
        self.elsewhere.insert(place, part);
        before
    }

    /// The part that takes precedence over the others.
    pub(super) fn winner(&self) -> Option<&Elsewhere> {
        let parts = self.elsewhere.iter();
        parts.min_by_key(|part| (part.claim, part.incarnation))
    }
}

/// Whether callees with these two policies exclude each other.
pub(super) fn is_conflict(one: InvocationPolicy, other: InvocationPolicy) -> bool {
    one != other || one == InvocationPolicy::Single
}
