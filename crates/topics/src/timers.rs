//! A heap of timers. A timer is not removed when its reason ends: one that fires finds out whether there is anything to
//! do.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::Time;

/// Timers of one kind, with the earliest on top.
#[derive(Debug)]
pub(crate) struct Timers<T> {
    heap: BinaryHeap<Reverse<(Time, T)>>,
    /// The number of timers at which stale ones are removed.
    sweep_at: usize,
}

impl<T: Ord> Timers<T> {
    pub(crate) fn new() -> Self {
        Self {
            heap: BinaryHeap::new(),
            sweep_at: SWEEP_MIN,
        }
    }

    /// Sets a timer. A client that connects again and again leaves a stale one each time. When their number has doubled,
    /// those that `is_live` rejects are removed.
    pub(crate) fn set(&mut self, at: Time, timer: T, is_live: impl Fn(Time, &T) -> bool) {
        self.heap.push(Reverse((at, timer)));
        if self.heap.len() >= self.sweep_at {
            self.heap.retain(|Reverse((at, timer))| is_live(*at, timer));
            self.sweep_at = SWEEP_MIN.max(2 * self.heap.len());
        }
    }

    pub(crate) fn next(&self) -> Option<Time> {
        self.heap.peek().map(|Reverse((at, _))| *at)
    }

    pub(crate) fn take_due(&mut self, now: Time) -> Option<(Time, T)> {
        if self.next()? > now {
            return None;
        }
        self.heap.pop().map(|Reverse(timer)| timer)
    }
}

/// Fewer timers are not worth a sweep.
const SWEEP_MIN: usize = 1024;
