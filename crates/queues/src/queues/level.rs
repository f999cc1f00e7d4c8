//! The messages of one priority: a lane, and in a deep queue the depths behind it.

use super::Entry;
use super::depths::Depths;
use super::lane::Lane;
use crate::Position;

#[derive(Debug, Default)]
pub(crate) struct Level {
    pub(super) lane: Lane,
    /// `None` if the lane is empty and the disk holds nothing.
    depths: Option<Box<Depths>>,
}

impl Level {
    pub(super) fn for_one() -> Self {
        Self {
            lane: Lane::for_one(),
            depths: None,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lane.is_empty() && self.depths.is_none()
    }

    pub(super) fn len(&self) -> usize {
        let depths = self.depths.as_ref().map_or(0, |found| found.len_of_all());
        self.lane.len() + depths
    }

    /// Adds behind all others. A level of a deep queue keeps one message in memory, and needs the position of the record
    /// of others.
    #[inline]
    pub(super) fn push(&mut self, entry: Entry, position: Position, is_deep: bool) {
        match &mut self.depths {
            None if is_deep && !self.lane.is_empty() => self.begin().push(entry, position),
            None => self.lane.push(entry),
            Some(depths) => depths.push(entry, position),
        }
    }

    #[inline]
    pub(super) fn pop(&mut self) -> Option<Entry> {
        let entry = self.lane.pop();
        if self.depths.is_some() {
            self.surface();
        }
        entry
    }

    /// Returns an entry to its place.
    pub(super) fn insert(&mut self, entry: Entry, position: Position) {
        match &mut self.depths {
            Some(depths) if depths.is_last(entry.place) => depths.push(entry, position),
            _ => self.lane.insert(entry),
        }
    }

    /// Takes out the entry with that place, if it is in memory.
    pub(super) fn take(&mut self, place: i64) -> Option<Entry> {
        let found = self.lane.take(place);
        let found = found.or_else(|| self.depths.as_mut()?.take(place));
        self.surface();
        found
    }

    pub(super) fn find_mut(&mut self, place: i64) -> Option<&mut Entry> {
        let found = self.lane.find_mut(place);
        found.or_else(|| self.depths.as_mut()?.find_mut(place))
    }

    /// Those in memory, in no particular order.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Entry> {
        let tail = self.depths.iter_mut().flat_map(|depths| depths.tail_mut());
        self.lane.iter_mut().chain(tail)
    }

    /// Those in memory, in their order.
    #[cfg(test)]
    pub(super) fn iter(&self) -> impl Iterator<Item = &Entry> {
        let tail = self.depths.iter().flat_map(|depths| depths.tail());
        self.lane.iter().chain(tail)
    }

    pub(crate) fn lane(&self) -> &Lane {
        &self.lane
    }

    #[inline]
    pub(crate) fn depths(&self) -> Option<&Depths> {
        self.depths.as_deref()
    }

    pub(super) fn depths_mut(&mut self) -> Option<&mut Depths> {
        self.depths.as_deref_mut()
    }

    /// Begins depths behind the lane, if there are none.
    #[cold]
    pub(super) fn begin(&mut self) -> &mut Depths {
        let head = self.lane.len();
        self.depths
            .get_or_insert_with(|| Box::new(Depths::behind(head)))
    }

    /// The head, and what is behind it.
    pub(super) fn parts_mut(&mut self) -> (&mut Lane, Option<&mut Depths>) {
        (&mut self.lane, self.depths.as_deref_mut())
    }

    pub(super) fn restore_depths(&mut self, depths: Depths) {
        self.depths = Some(Box::new(depths));
    }

    /// The places to read next, if a page is due.
    pub(super) fn wanted(&self) -> Option<(i64, i64)> {
        self.depths.as_ref()?.wanted(self.lane.len())
    }

    /// If nothing is on the disk and the head is empty, the tail becomes the head.
    #[cold]
    pub(super) fn surface(&mut self) {
        let is_over = |depths: &mut Box<Depths>| depths.len() == 0;
        if self.lane.is_empty()
            && let Some(depths) = self.depths.take_if(is_over)
        {
            self.lane = Lane::of(depths.into_tail());
        }
    }
}
