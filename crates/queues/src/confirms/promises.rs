//! The confirms owed to a channel in confirm mode.

use std::collections::VecDeque;

use crate::shrink::shrink;

#[derive(Debug, Default)]
pub(super) struct Promises {
    /// The last publication's number.
    pub(super) last: u64,
    /// How many were confirmed.
    pub(super) confirmed: u64,
    /// How many wait for a store.
    pub(super) waiting: usize,
    /// The numbers in the line of those that wait, oldest first; some may have been confirmed since.
    pub(super) line: VecDeque<u64>,
    /// Confirmed and not told yet; no earlier one waits.
    pub(super) ready: Option<Ready>,
    /// Confirmed and not told yet; an earlier one may wait.
    pub(super) early: Vec<u64>,
}

/// Publications that are confirmed together.
#[derive(Debug)]
pub(super) struct Ready {
    /// The last one's number.
    pub(super) to: u64,
    pub(super) count: u64,
}

impl Ready {
    /// Adds one, to none or some.
    pub(super) fn add(ready: &mut Option<Self>, tag: u64) {
        let (to, count) = ready
            .as_ref()
            .map_or((0, 0), |ready| (ready.to, ready.count));
        *ready = Some(Self {
            to: to.max(tag),
            count: count + 1,
        });
    }
}

impl Promises {
    /// Whether confirms are to be sent.
    #[inline]
    pub(super) fn has_news(&self) -> bool {
        self.ready.is_some() || !self.early.is_empty()
    }

    /// Marks the number in the line, and those before it, as not waiting.
    #[inline]
    pub(super) fn leave_line(&mut self, number: u64) {
        self.waiting -= 1;
        while self.line.pop_front_if(|n| *n <= number).is_some() {}
    }

    /// Takes the confirmed publications after one that waits, in order; earlier ones become ready.
    pub(super) fn take_early(&mut self, publication: impl Fn(u64) -> Option<u64>) -> Vec<u64> {
        let first_waiting = self.first_waiting(publication);
        let mut early = std::mem::take(&mut self.early);
        early.retain(|tag| {
            let is_ready = first_waiting.is_none_or(|waiting| *tag < waiting);
            if is_ready {
                Ready::add(&mut self.ready, *tag);
            }
            !is_ready
        });
        early.sort_unstable();
        early
    }

    /// The first publication that waits; `publication` maps its number to its tag while it waits.
    fn first_waiting(&mut self, publication: impl Fn(u64) -> Option<u64>) -> Option<u64> {
        while let Some(number) = self.line.front() {
            if let Some(tag) = publication(*number) {
                return Some(tag);
            }
            self.line.pop_front();
        }
        shrink(&mut self.line);
        None
    }
}
