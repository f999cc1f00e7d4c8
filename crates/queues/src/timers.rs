//! One heap of everything that happens by time. Entries are not taken out when their reason goes:
//! whoever a timer wakes looks whether there is something to do, and sets the next.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::{ChannelKey, QueueKey, Time};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Timer {
    /// The first message of a queue may have expired.
    Head(QueueKey),
    /// A queue may not have been used for long enough.
    Unused(QueueKey),
    /// A channel's oldest delivery may be too old.
    Unacked(ChannelKey),
    /// A channel has more room than it had.
    Room(ChannelKey),
}

#[derive(Debug, Default)]
pub(crate) struct Timers {
    heap: BinaryHeap<Reverse<(Time, Timer)>>,
    /// Beyond so many the stale ones are sorted out.
    sweep_at: usize,
}

impl Timers {
    pub(crate) fn set(&mut self, at: Time, timer: Timer) {
        self.heap.push(Reverse((at, timer)));
    }

    pub(crate) fn next(&self) -> Option<Time> {
        self.heap.peek().map(|Reverse((at, _))| *at)
    }

    pub(crate) fn take_due(&mut self, now: Time) -> Option<(Time, Timer)> {
        let Reverse((at, timer)) = *self.heap.peek()?;
        if at > now {
            return None;
        }
        self.heap.pop();
        Some((at, timer))
    }

    /// A queue's first message can be replaced by one that expires earlier, again and again; each
    /// time leaves a stale entry. When they have doubled, `is_live` says which stay.
    pub(crate) fn sweep(&mut self, is_live: impl Fn(Time, Timer) -> bool) {
        if self.heap.len() < self.sweep_at.max(SWEEP_MIN) {
            return;
        }
        self.heap
            .retain(|Reverse((at, timer))| is_live(*at, *timer));
        self.sweep_at = 2 * self.heap.len();
    }
}

const SWEEP_MIN: usize = 1024;
