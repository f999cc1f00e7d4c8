//! The part of a deep queue that is on the disk alone.
//!
//! ```text
//! front ◀─ the lowest lane │ on the disk: places from..=to │ tail ◀─ arrivals
//!              ▲                      │        ▲             │
//!              └── a page (paged_in) ─┘        └── sink ─────┘ once the store has committed its record
//! ```
//!
//! A queue begins depths when it is long and the vhost's messages take much memory. Its lane stays the head. Arrivals
//! wait in the tail until the store has committed their records, and then leave memory. The head is refilled page by
//! page, each requested before the last one is used up.

use std::collections::VecDeque;

use super::Entry;
use crate::Position;

#[derive(Debug)]
pub(crate) struct Depths {
    /// The places of the first and the last message on the disk, if there are any.
    from: i64,
    to: i64,
    len: usize,
    /// Their bodies' bytes.
    body_bytes: u64,
    tail: VecDeque<Entry>,
    /// For each entry of the tail, the position up to which the store must have committed.
    positions: VecDeque<Position>,
    /// Number of messages in the head at which the next page is requested.
    low: usize,
    is_reading: bool,
}

/// A page that left the disk, compared with what was expected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PageEnd {
    /// Messages that should have come and did not, which is known when the read has reached the last place.
    pub(crate) missing: usize,
    /// Body bytes that were expected and are not there, and those that came and were not expected: a store's figure may
    /// be an estimate.
    pub(crate) bytes_short: u64,
    pub(crate) bytes_over: u64,
}

impl Depths {
    /// Begins them behind a head of that many messages.
    pub(crate) fn behind(head: usize) -> Self {
        Self {
            from: i64::MAX,
            to: i64::MIN,
            len: 0,
            body_bytes: 0,
            tail: VecDeque::new(),
            positions: VecDeque::new(),
            low: head / 2,
            is_reading: false,
        }
    }

    /// Those of a queue that a restart has left on the disk.
    pub(crate) fn kept((from, to): (i64, i64), len: usize, body_bytes: u64) -> Self {
        Self {
            from,
            to,
            len,
            body_bytes,
            ..Self::behind(0)
        }
    }

    /// Number of messages on the disk alone.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Number of messages on the disk and behind them.
    pub(crate) fn len_of_all(&self) -> usize {
        self.len + self.tail.len()
    }

    #[cfg(test)]
    pub(crate) fn body_bytes(&self) -> u64 {
        self.body_bytes
    }

    /// The places of the first and the last of these.
    pub(crate) fn places(&self) -> Option<(i64, i64)> {
        (self.len > 0).then_some((self.from, self.to))
    }

    /// Whether a message with that place, which has just been taken, is behind all others. Others that return were in
    /// the head.
    pub(crate) fn is_last(&self, place: i64) -> bool {
        match self.tail.back() {
            Some(last) => last.place < place,
            None => self.len > 0 && self.to < place,
        }
    }

    /// Adds behind all others. It may leave memory once the store has committed up to `position`.
    pub(crate) fn push(&mut self, entry: Entry, position: Position) {
        self.tail.push_back(entry);
        self.positions.push_back(position);
    }

    /// The entry of the tail with that place.
    pub(crate) fn find_mut(&mut self, place: i64) -> Option<&mut Entry> {
        let at = self.tail.binary_search_by_key(&place, |entry| entry.place);
        self.tail.get_mut(at.ok()?)
    }

    /// Takes out the entry of the tail with that place.
    pub(crate) fn take(&mut self, place: i64) -> Option<Entry> {
        let at = self.tail.binary_search_by_key(&place, |entry| entry.place);
        let at = at.ok()?;
        self.positions.remove(at);
        self.tail.remove(at)
    }

    /// The position at which all of the tail may leave memory.
    pub(crate) fn awaited(&self) -> Option<Position> {
        self.positions.back().copied()
    }

    /// Takes the first of the tail out of memory, if the store has committed it; the caller releases it.
    pub(crate) fn sink(&mut self, committed: Position) -> Option<Entry> {
        self.positions.front().filter(|at| **at <= committed)?;
        self.tail.front().filter(|entry| entry.is_recorded())?;
        self.positions.pop_front();
        let entry = self.tail.pop_front()?;
        self.from = self.from.min(entry.place);
        self.to = entry.place;
        self.len += 1;
        self.body_bytes += entry.content.body().len() as u64;
        Some(entry)
    }

    /// Adds a message, which the store has, before all that are on the disk.
    pub(super) fn add_first(&mut self, place: i64, body_bytes: u64) {
        if self.len == 0 {
            self.to = place;
        }
        self.from = place;
        self.len += 1;
        self.body_bytes += body_bytes;
    }

    /// The head has that many messages now: no page is due before half of them are gone.
    pub(super) fn lower(&mut self, head: usize) {
        self.low = self.low.min(head / 2);
    }

    pub(super) fn is_being_read(&self) -> bool {
        self.is_reading
    }

    /// The places to read next, if the head has so few messages that a page is due.
    pub(crate) fn wanted(&self, head: usize) -> Option<(i64, i64)> {
        self.places()
            .filter(|_| !self.is_reading && head <= self.low)
    }

    /// Whether a page from that place on is being read.
    pub(crate) fn is_reading(&self, from: i64) -> bool {
        self.is_reading && self.from == from
    }

    pub(crate) fn begin_reading(&mut self) {
        self.is_reading = true;
    }

    /// Ends the read of all messages up to `upto`: that many came, with that many body bytes.
    pub(crate) fn end_reading(&mut self, upto: i64, len: usize, body_bytes: u64) -> PageEnd {
        let mut end = PageEnd {
            bytes_over: body_bytes.saturating_sub(self.body_bytes),
            ..PageEnd::default()
        };
        self.is_reading = false;
        self.len = self.len.saturating_sub(len);
        self.body_bytes = self.body_bytes.saturating_sub(body_bytes);
        self.low = len / 2;
        if upto < self.to {
            self.from = self.from.max(upto.saturating_add(1));
            return end;
        }
        end.missing = std::mem::take(&mut self.len);
        end.bytes_short = std::mem::take(&mut self.body_bytes);
        (self.from, self.to) = (i64::MAX, i64::MIN);
        end
    }

    /// Forgets the messages on the disk; returns their places.
    pub(crate) fn forget(&mut self) -> Option<(i64, i64)> {
        let places = self.places();
        *self = Self {
            tail: std::mem::take(&mut self.tail),
            ..Self::behind(0)
        };
        places
    }

    /// What is behind those on the disk.
    pub(crate) fn tail(&self) -> &VecDeque<Entry> {
        &self.tail
    }

    pub(crate) fn tail_mut(&mut self) -> &mut VecDeque<Entry> {
        &mut self.tail
    }

    /// The tail, once nothing is on the disk alone.
    pub(crate) fn into_tail(self) -> VecDeque<Entry> {
        self.tail
    }
}
