//! What other nodes have of a registration, and callees here that they do not know of yet.

use crosstie_wamp::{InvocationPolicy, SessionId};

use super::callees::Callee;
use crate::across::Listed;
use crate::party::NeighbourIndex;

/// Beside the callees of this node; there only where there is anything of it.
#[derive(Debug, Default)]
pub(super) struct Parts {
    /// In the order of their first callees.
    pub(super) elsewhere: Vec<Elsewhere>,
    /// Callees that have not been told REGISTERED, in the order of their numbers: they serve nothing.
    pub(super) pending: Vec<Callee>,
    /// Whose turn it is among all callees.
    pub(super) turn: u64,
    /// This node's callee is the only one, for as long as its lease is.
    pub(super) is_leased: bool,
    /// The session that served it last, of those whose end nobody was told of.
    pub(super) untold: Option<SessionId>,
    /// A node has told everybody that it has ended: what others withdraw late is no end.
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
    /// Where its callees are among those of all nodes.
    pub(super) fn place(&self) -> (u64, u64) {
        (self.first, self.incarnation)
    }
}

impl Parts {
    pub(super) fn is_empty(&self) -> bool {
        self.elsewhere.is_empty() && self.pending.is_empty() && !self.is_leased
    }

    /// Writes a node's part anew; the one before.
    pub(super) fn put(&mut self, part: Elsewhere) -> Option<Elsewhere> {
        let mut parts = self.elsewhere.iter();
        let before = parts.position(|known| known.node == part.node);
        let before = before.map(|place| self.elsewhere.remove(place));
        let is_before = |known: &Elsewhere| known.place() < part.place();
        let place = self.elsewhere.partition_point(is_before);
        self.elsewhere.insert(place, part);
        before
    }

    /// The part that the others yield to.
    pub(super) fn winner(&self) -> Option<&Elsewhere> {
        let parts = self.elsewhere.iter();
        parts.min_by_key(|part| (part.claim, part.incarnation))
    }
}

/// Whether callees of two policies cannot be beside each other.
pub(super) fn is_conflict(one: InvocationPolicy, other: InvocationPolicy) -> bool {
    one != other || one == InvocationPolicy::Single
}
