//! The line of publications that wait for a store, in the order of its positions. Each has a number, so that a
//! message that is done with before its commit finds what waits for it.

use std::collections::VecDeque;

use crate::shrink::shrink;
use crate::{ChannelKey, Position};

#[derive(Debug)]
pub(super) struct Line {
    waiting: VecDeque<Waiting>,
    /// The first one's. None has 0, by which a message says that nothing waits for it.
    first: u64,
}

/// A channel is told when a store has everything up to there.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) position: Position,
    pub(super) channel: ChannelKey,
    pub(super) awaited: Awaited,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Awaited {
    /// The confirm of a publication, of which a store is to keep so many entries of queues.
    Publication { tag: u64, owed: u32 },
    /// `tx.commit-ok`.
    Commit,
    /// It was told: its queues had forgotten the message before a store had it.
    Told,
}

impl Line {
    pub(super) fn new() -> Self {
        Self {
            waiting: VecDeque::new(),
            first: 1,
        }
    }

    /// Returns the number.
    pub(super) fn push(&mut self, waiting: Waiting) -> u64 {
        self.waiting.push_back(waiting);
        self.first + self.waiting.len() as u64 - 1
    }

    /// The first, if it is within that position, with its number.
    #[inline(always)]
    pub(super) fn pop_within(&mut self, position: Position) -> Option<(u64, Waiting)> {
        let waiting = self.waiting.pop_front_if(|w| w.position <= position)?;
        let number = self.first;
        self.first += 1;
        Some((number, waiting))
    }

    /// After some have left.
    #[inline(always)]
    pub(super) fn shrink(&mut self) {
        shrink(&mut self.waiting);
    }

    /// An entry of a queue less is owed for what waits by that number. Returns the publication's
    /// channel and tag when it was the last: nothing is waited for any more.
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

    /// The publication that waits by that number.
    pub(super) fn publication(&self, number: u64) -> Option<u64> {
        let at = usize::try_from(number.checked_sub(self.first)?).ok()?;
        match self.waiting.get(at)?.awaited {
            Awaited::Publication { tag, .. } => Some(tag),
            Awaited::Commit | Awaited::Told => None,
        }
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}
