//! The parties of a call: a session, or another node of the realm.

use crate::identity::SessionIndex;

/// A session's index in its table, or with the highest bit set a neighbour's in the other one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Party(u32);

const NEIGHBOUR: u32 = 1 << 31;

/// A neighbour's index in its table. References with it end with the neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct NeighbourIndex(pub(crate) u32);

impl Party {
    #[inline]
    pub(crate) fn neighbour(self) -> Option<NeighbourIndex> {
        (self.0 & NEIGHBOUR != 0).then_some(NeighbourIndex(self.0 & !NEIGHBOUR))
    }

    /// The index in its table.
    #[inline]
    pub(crate) fn place(self) -> usize {
        (self.0 & !NEIGHBOUR) as usize
    }

    #[inline]
    pub(crate) fn session(self) -> Option<SessionIndex> {
        (self.0 & NEIGHBOUR == 0).then_some(SessionIndex(self.0))
    }
}

impl From<SessionIndex> for Party {
    #[inline]
    fn from(session: SessionIndex) -> Self {
        Self(session.0)
    }
}

impl From<NeighbourIndex> for Party {
    fn from(neighbour: NeighbourIndex) -> Self {
        Self(neighbour.0 | NEIGHBOUR)
    }
}
