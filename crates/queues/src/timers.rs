//! A heap of timers of one room. Timers are not removed when their reason ends: a fired timer checks whether there is
//! work, and sets the next one.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::Time;

/// `T` names the subject of a timer.
#[derive(Debug)]
pub(crate) struct Timers<T> {
    heap: BinaryHeap<Reverse<(Time, T)>>,
    /// Number of timers at which stale ones are removed.
    sweep_at: usize,
}

impl<T: Copy + Ord> Timers<T> {
    pub(crate) fn new() -> Self {
        Self {
            heap: BinaryHeap::new(),
            sweep_at: SWEEP_MIN,
        }
    }

    /// Sets a timer. A queue's first message may be replaced again and again by one that expires earlier, which leaves
    /// a stale timer each time. When their number has doubled, those that `is_live` rejects are removed.
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

/// Fewer timers are not worth a sweep.
const SWEEP_MIN: usize = 1024;
