//! The line of publications that wait for a store, in the order of their positions. Each has a number, by which a
//! message that leaves all queues before its commit finds its confirm.

use std::collections::VecDeque;

use crate::shrink::shrink;
use crate::{ChannelKey, Position};

#[derive(Debug)]
pub(super) struct Line {
    waiting: VecDeque<Waiting>,
    /// The number of the first one. 0 is never used: a message with 0 has no waiting confirm.
    first: u64,
}

/// A channel that is told when the store has committed up to a position.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) position: Position,
    pub(super) channel: ChannelKey,
    pub(super) awaited: Awaited,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Awaited {
    /// The confirm of a publication; `owed` is the number of queue entries that the store has yet to keep.
    Publication { tag: u64, owed: u32 },
    /// `tx.commit-ok`.
    Commit,
    /// Confirmed already: its queues had forgotten the message before the store kept it.
    Told,
}

impl Line {
    pub(super) fn new() -> Self {
        Self {
            waiting: VecDeque::new(),
            first: 1,
        }
    }

    /// Adds to the line; returns the number.
    pub(super) fn push(&mut self, waiting: Waiting) -> u64 {
        self.waiting.push_back(waiting);
        self.first + self.waiting.len() as u64 - 1
    }

    /// The position of the last.
    pub(super) fn last_position(&self) -> Option<Position> {
        self.waiting.back().map(|waiting| waiting.position)
    }

    /// Takes the first, if it is within that position, with its number.
    #[inline(always)]
    pub(super) fn pop_within(&mut self, position: Position) -> Option<(u64, Waiting)> {
        let waiting = self.waiting.pop_front_if(|w| w.position <= position)?;
        let number = self.first;
        self.first += 1;
        Some((number, waiting))
    }

    /// Gives memory back after several have left.
    #[inline(always)]
    pub(super) fn shrink(&mut self) {
        shrink(&mut self.waiting);
    }

    /// Reduces the entries owed for a number by one. Returns the publication's channel and tag if it was the last one.
    pub(super) fn settle(&mut self, number: u64) -> Option<(ChannelKey, u64)> {
        let at = usize::try_from(number.checked_sub(self.first)?).ok()?;
        let waiting = self.waiting.get_mut(at)?;
        let Awaited::Publication { tag, owed } = &mut waiting.awaited else {
            return None;
        };
        *owed = owed.saturating_sub(1);
        if *owed > 0 {
            return None;
        }
        let tag = *tag;
        waiting.awaited = Awaited::Told;
        Some((waiting.channel, tag))
    }

    /// Takes what waits with that number, before its position is reached.
    pub(super) fn take(&mut self, number: u64) -> Option<(ChannelKey, Awaited)> {
        let at = usize::try_from(number.checked_sub(self.first)?).ok()?;
        let waiting = self.waiting.get_mut(at)?;
        let awaited = std::mem::replace(&mut waiting.awaited, Awaited::Told);
        Some((waiting.channel, awaited))
    }

    /// The numbers of the commits that wait for positions behind the first one, up to the second.
    pub(super) fn commits(&self, behind: Position, to: Position) -> impl Iterator<Item = u64> {
        let waiting = self.waiting.iter().zip(self.first..);
        let waiting = waiting.skip_while(move |(waiting, _)| waiting.position <= behind);
        let waiting = waiting.take_while(move |(waiting, _)| waiting.position <= to);
        let commits = waiting.filter(|(waiting, _)| matches!(waiting.awaited, Awaited::Commit));
        commits.map(|(_, number)| number)
    }

    /// Adds to the entries owed for a number.
    pub(super) fn owe(&mut self, number: u64, entries: u32) {
        let at = number.checked_sub(self.first);
        let at = at.and_then(|at| usize::try_from(at).ok());
        if let Some(Waiting {
            awaited: Awaited::Publication { owed, .. },
            ..
        }) = at.and_then(|at| self.waiting.get_mut(at))
        {
            *owed = owed.saturating_add(entries);
        }
    }

    /// The tag of the publication with that number.
    pub(super) fn publication(&self, number: u64) -> Option<u64> {
        let at = usize::try_from(number.checked_sub(self.first)?).ok()?;
        match self.waiting.get(at)?.awaited {
            Awaited::Publication { tag, .. } => Some(tag),
            Awaited::Commit | Awaited::Told => None,
        }
    }

    /// Whether a publication or a commit with that number waits.
    pub(super) fn is_waiting(&self, number: u64) -> bool {
        let at = number.checked_sub(self.first);
        let at = at.and_then(|at| usize::try_from(at).ok());
        let waiting = at.and_then(|at| self.waiting.get(at));
        waiting.is_some_and(|waiting| !matches!(waiting.awaited, Awaited::Told))
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}
