//! The realm's other nodes, as parties that make and serve calls.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops;

use slab::Slab;

use crate::across::NeighbourKey;
use crate::keys::{CallKey, RegistrationKey};
use crate::party::NeighbourIndex;

/// Another node, from when it has been met until all that it left behind is gone.
#[derive(Debug)]
pub(crate) struct Neighbour {
    pub(crate) key: NeighbourKey,
    /// It has gone, or is another one now: it is sent nothing more.
    pub(crate) closing: bool,
    /// The last number of a call that was made to it.
    pub(crate) invocation_last: u64,
    /// Open calls that it made.
    pub(crate) calls: Vec<CallKey>,
    /// Open calls that it serves.
    pub(crate) invocations: Vec<CallKey>,
    /// Registrations that it has a part in.
    pub(crate) offers: BTreeSet<RegistrationKey>,
    /// The place of the registration that it is to be told of next; `None` when it knows all.
    pub(crate) told: Option<u32>,
    /// What it was asked and has not answered.
    pub(crate) asked: Option<u64>,
}

#[derive(Debug, Default)]
pub(crate) struct Neighbours {
    slab: Slab<Neighbour>,
    /// Those that are there.
    by_key: BTreeMap<NeighbourKey, NeighbourIndex>,
    /// Those that have gone and still hold something.
    leaving: VecDeque<NeighbourIndex>,
    /// Those that are told of registrations.
    pub(crate) telling: VecDeque<NeighbourIndex>,
}

impl Neighbours {
    pub(crate) fn join(&mut self, key: NeighbourKey) {
        if self.by_key.contains_key(&key) {
            return;
        }
        let index = NeighbourIndex(self.slab.insert(Neighbour {
            key,
            closing: false,
            invocation_last: 0,
            calls: Vec::new(),
            invocations: Vec::new(),
            offers: BTreeSet::new(),
            told: Some(0),
            asked: None,
        }) as u32);
        self.by_key.insert(key, index);
        self.telling.push_back(index);
    }

    /// From now on it is sent nothing, and serves nothing; what it holds is to be taken away.
    pub(crate) fn leave(&mut self, key: NeighbourKey) {
        if let Some(index) = self.by_key.remove(&key) {
            self[index].closing = true;
            self[index].asked = None;
            self.telling.retain(|telling| *telling != index);
            self.leaving.push_back(index);
        }
    }

    /// One that has gone and still holds something.
    pub(crate) fn leaving(&self) -> Option<NeighbourIndex> {
        self.leaving.front().copied()
    }

    /// The one that left first holds nothing any more.
    pub(crate) fn remove_left(&mut self) {
        if let Some(index) = self.leaving.pop_front() {
            self.slab.remove(index.0 as usize);
        }
    }

    pub(crate) fn find(&self, key: NeighbourKey) -> Option<NeighbourIndex> {
        self.by_key.get(&key).copied()
    }

    /// Those that are there, in the order of their keys.
    pub(crate) fn there(&self) -> impl Iterator<Item = NeighbourIndex> + use<'_> {
        self.by_key.values().copied()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (NeighbourIndex, &Neighbour)> {
        let all = self.slab.iter();
        all.map(|(index, neighbour)| (NeighbourIndex(index as u32), neighbour))
    }

    #[inline]
    pub(crate) fn is_any_there(&self) -> bool {
        !self.by_key.is_empty()
    }

    /// Whether somebody has not answered.
    pub(crate) fn is_asked(&self) -> bool {
        let mut there = self.there();
        there.any(|index| self[index].asked.is_some())
    }

    /// Open calls of all of them.
    pub(crate) fn calls(&self) -> usize {
        let all = self.slab.iter();
        let open = all.map(|(_, neighbour)| neighbour.calls.len() + neighbour.invocations.len());
        open.sum()
    }

    /// Their parts in registrations.
    pub(crate) fn offers(&self) -> usize {
        let all = self.slab.iter();
        all.map(|(_, neighbour)| neighbour.offers.len()).sum()
    }

    pub(crate) fn has_backlog(&self) -> bool {
        !self.leaving.is_empty() || !self.telling.is_empty()
    }
}

impl ops::Index<NeighbourIndex> for Neighbours {
    type Output = Neighbour;

    fn index(&self, index: NeighbourIndex) -> &Neighbour {
        &self.slab[index.0 as usize]
    }
}

impl ops::IndexMut<NeighbourIndex> for Neighbours {
    fn index_mut(&mut self, index: NeighbourIndex) -> &mut Neighbour {
        &mut self.slab[index.0 as usize]
    }
}
