//! A heap of what happens by time in one room. Entries are not taken out when their reason goes:
//! what a timer wakes looks whether there is something to do, and sets the next.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::Time;

/// `T` says what is to be looked at.
#[derive(Debug)]
pub(crate) struct Timers<T> {
    heap: BinaryHeap<Reverse<(Time, T)>>,
    /// Beyond so many the stale ones are sorted out.
    sweep_at: usize,
}

impl<T: Copy + Ord> Timers<T> {
    pub(crate) fn new() -> Self {
        Self {
            heap: BinaryHeap::new(),
            sweep_at: SWEEP_MIN,
        }
    }

    /// A queue's first message can be replaced by one that expires earlier, again and again; each
    /// time leaves a stale entry. When they have doubled, `is_live` says which stay.
    pub(crate) fn set(&mut self, at: Time, timer: T, is_live: impl Fn(Time, T) -> bool) {
        self.heap.push(Reverse((at, timer)));
        if self.heap.len() >= self.sweep_at {
            self.heap
                .retain(|Reverse((at, timer))| is_live(*at, *timer));
            self.sweep_at = SWEEP_MIN.max(2 * self.heap.len());
        }
    }

    pub(crate) fn next(&self) -> Option<Time> {
        self.heap.peek().map(|Reverse((at, _))| *at)
    }

    pub(crate) fn take_due(&mut self, now: Time) -> Option<(Time, T)> {
        let Reverse((at, timer)) = *self.heap.peek()?;
        if at > now {
            return None;
        }
        self.heap.pop();
        Some((at, timer))
    }
}

/// Fewer entries are not worth a sweep.
const SWEEP_MIN: usize = 1024;
