//! The realm's other nodes, as parties that make and serve calls.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops;

use slab::Slab;

use crate::across::NeighbourKey;
use crate::call_table::CallTable;
use crate::keys::RegistrationKey;
use crate::party::NeighbourIndex;

/// Another node, from its joining until its remains are removed.
#[derive(Debug)]
pub(crate) struct Neighbour {
    pub(crate) key: NeighbourKey,
    /// It has gone, or returned with another incarnation: it is sent nothing more.
    pub(crate) closing: bool,
    /// The last number of a call that was sent to it.
    pub(crate) invocation_last: u64,
    /// Open calls that it made.
    pub(crate) calls: CallTable,
    /// Open calls that it serves.
    pub(crate) invocations: CallTable,
    /// Registrations that it has a part in.
    pub(crate) offers: BTreeSet<RegistrationKey>,
    /// The place of the next registration to announce to it; `None` when it knows all.
    pub(crate) told: Option<u32>,
    /// The number of a confirmation that it was asked for and has not sent.
    pub(crate) asked: Option<u64>,
}

#[derive(Debug, Default)]
pub(crate) struct Neighbours {
    slab: Slab<Neighbour>,
    /// Present nodes.
    by_key: BTreeMap<NeighbourKey, NeighbourIndex>,
    /// Nodes that have gone, and whose remains are not removed yet.
    leaving: VecDeque<NeighbourIndex>,
    /// Nodes that are being sent the registrations.
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
            calls: CallTable::default(),
            invocations: CallTable::default(),
            offers: BTreeSet::new(),
            told: Some(0),
            asked: None,
        }) as u32);
        self.by_key.insert(key, index);
        self.telling.push_back(index);
    }

    /// Handles a node that has gone: it is sent nothing and serves nothing; its remains are to be removed.
    pub(crate) fn leave(&mut self, key: NeighbourKey) {
        if let Some(index) = self.by_key.remove(&key) {
            self[index].closing = true;
            self[index].asked = None;
            self.telling.retain(|telling| *telling != index);
            self.leaving.push_back(index);
        }
    }

    /// A node that has gone and still has remains.
    pub(crate) fn leaving(&self) -> Option<NeighbourIndex> {
        self.leaving.front().copied()
    }

    /// Removes the node that left first, whose remains are removed.
    pub(crate) fn remove_left(&mut self) {
        if let Some(index) = self.leaving.pop_front() {
            self.slab.remove(index.0 as usize);
        }
    }

    pub(crate) fn find(&self, key: NeighbourKey) -> Option<NeighbourIndex> {
        self.by_key.get(&key).copied()
    }

    /// A node, unless its remains were removed.
    pub(crate) fn get(&self, index: NeighbourIndex) -> Option<&Neighbour> {
        self.slab.get(index.0 as usize)
    }

    /// The present nodes, in the order of their keys.
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

    /// Whether a confirmation is outstanding.
    pub(crate) fn is_asked(&self) -> bool {
        let mut there = self.there();
        there.any(|index| self[index].asked.is_some())
    }

    /// Number of their open calls.
    pub(crate) fn calls(&self) -> usize {
        let all = self.slab.iter();
        let open = all.map(|(_, neighbour)| neighbour.calls.len() + neighbour.invocations.len());
        open.sum()
    }

    /// Number of their parts in registrations.
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
