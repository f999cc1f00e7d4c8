//! A line of messages in the order of their places.
//!
//! Messages enter at the end and leave from the front. A returned message mostly was at the front a moment ago, or
//! belongs to all that was there. But it may be any, in any order, among any number of others: that costs a logarithm.

use std::collections::{BTreeMap, VecDeque};

use super::Entry;
use crate::shrink::shrink;

#[derive(Debug, Default)]
pub(crate) struct Lane {
    line: VecDeque<Entry>,
    /// `None` if nothing is among the others: that is checked for each message.
    returned: Option<Box<Returned>>,
}

/// Messages returned to places behind the line's front.
#[derive(Debug, Default)]
struct Returned {
    /// In order, as many are returned.
    run: VecDeque<Entry>,
    tree: BTreeMap<i64, Entry>,
}

/// The location of an entry.
#[derive(Clone, Copy)]
enum Part {
    Line,
    Run,
    Tree,
}

impl Lane {
    pub(crate) fn for_one() -> Self {
        Self {
            line: VecDeque::with_capacity(1),
            returned: None,
        }
    }

    /// Of messages in the order of their places.
    pub(crate) fn of(line: VecDeque<Entry>) -> Self {
        Self {
            line,
            returned: None,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.line.len() + self.returned.as_ref().map_or(0, |returned| returned.len())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.line.is_empty() && self.returned.is_none()
    }

    #[inline]
    pub(crate) fn front(&self) -> Option<&Entry> {
        match &self.returned {
            None => self.line.front(),
            Some(returned) => self.front_of_all(returned).map(|(_, entry)| entry),
        }
    }

    /// Adds behind all others.
    #[inline]
    pub(crate) fn push(&mut self, entry: Entry) {
        self.line.push_back(entry);
    }

    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Entry> {
        if self.returned.is_some() {
            return self.pop_of_all();
        }
        let entry = self.line.pop_front()?;
        shrink(&mut self.line);
        Some(entry)
    }

    /// The last of each part: the last one of all is among them.
    pub(super) fn lasts(&self) -> impl Iterator<Item = &Entry> {
        let returned = self.returned.iter();
        let returned = returned.flat_map(|found| {
            let last = found.tree.last_key_value().map(|(_, entry)| entry);
            found.run.back().into_iter().chain(last)
        });
        self.line.back().into_iter().chain(returned)
    }

    /// Keeps no room for more messages than it has.
    pub(super) fn give_back_room(&mut self) {
        self.line.shrink_to_fit();
    }

    /// Returns an entry to its place.
    pub(crate) fn insert(&mut self, entry: Entry) {
        let place = entry.place;
        if self.line.back().is_none_or(|back| back.place < place) {
            return self.line.push_back(entry);
        }
        if self.line.front().is_some_and(|front| place < front.place) {
            return self.line.push_front(entry);
        }
        let Returned { run, tree } = &mut **self.returned.get_or_insert_default();
        match run.back().is_none_or(|back| back.place < place) {
            true => run.push_back(entry),
            false => {
                tree.insert(place, entry);
            }
        }
    }

    /// The first message that was never delivered.
    pub(crate) fn first_fresh(&self) -> Option<&Entry> {
        self.line.iter().find(|entry| !entry.is_redelivered)
    }

    /// Messages that have been delivered before. They precede all others of their level, as they were taken from the
    /// front. Only quorum queues have some further back, and count each.
    pub(crate) fn delivered(&self) -> impl Iterator<Item = &Entry> {
        let returned = self.returned.iter();
        let returned = returned.flat_map(|found| found.run.iter().chain(found.tree.values()));
        let line = self.line.iter().take_while(|entry| entry.is_redelivered);
        line.chain(returned)
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Entry> {
        let returned = self.returned.iter_mut();
        let returned =
            returned.flat_map(|found| found.run.iter_mut().chain(found.tree.values_mut()));
        self.line.iter_mut().chain(returned)
    }

    pub(crate) fn find_mut(&mut self, place: i64) -> Option<&mut Entry> {
        if let Some(at) = find(&self.line, place) {
            return self.line.get_mut(at);
        }
        let returned = self.returned.as_mut()?;
        match find(&returned.run, place) {
            Some(at) => returned.run.get_mut(at),
            None => returned.tree.get_mut(&place),
        }
    }

    pub(crate) fn take(&mut self, place: i64) -> Option<Entry> {
        if let Some(at) = find(&self.line, place) {
            return self.line.remove(at);
        }
        let returned = self.returned.as_mut()?;
        let taken = match find(&returned.run, place) {
            Some(at) => returned.run.remove(at),
            None => returned.tree.remove(&place),
        };
        self.returned.take_if(|returned| returned.len() == 0);
        taken
    }

    #[cfg(test)]
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Entry> {
        let mut entries: Vec<&Entry> = self.line.iter().collect();
        if let Some(returned) = &self.returned {
            entries.extend(returned.run.iter().chain(returned.tree.values()));
        }
        entries.sort_by_key(|entry| entry.place);
        entries.into_iter()
    }

    fn front_of_all<'a>(&'a self, returned: &'a Returned) -> Option<(Part, &'a Entry)> {
        let line = self.line.front().map(|entry| (Part::Line, entry));
        let run = returned.run.front().map(|entry| (Part::Run, entry));
        let tree = returned.tree.first_key_value();
        let tree = tree.map(|(_, entry)| (Part::Tree, entry));
        let parts = [line, run, tree].into_iter().flatten();
        parts.min_by_key(|(_, entry)| entry.place)
    }

    #[cold]
    fn pop_of_all(&mut self) -> Option<Entry> {
        let (part, _) = self.front_of_all(self.returned.as_ref()?)?;
        let returned = self.returned.as_mut()?;
        let entry = match part {
            Part::Line => self.line.pop_front(),
            Part::Run => returned.run.pop_front(),
            Part::Tree => returned.tree.pop_first().map(|(_, entry)| entry),
        };
        shrink(&mut self.line);
        shrink(&mut returned.run);
        self.returned.take_if(|returned| returned.len() == 0);
        entry
    }
}

impl Returned {
    fn len(&self) -> usize {
        self.run.len() + self.tree.len()
    }
}

fn find(line: &VecDeque<Entry>, place: i64) -> Option<usize> {
    line.binary_search_by_key(&place, |entry| entry.place).ok()
}
