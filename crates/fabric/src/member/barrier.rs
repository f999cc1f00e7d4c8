//! Barriers: show a node that others know its subscriptions.
//!
//! A server announces its clients' subscriptions to other servers in their order, and before later messages. A note
//! that reaches a node at another server thus shows that this server knows them; the answer to a ping shows the same
//! for the own server. One barrier is in progress at a time; further subscriptions wait for the next.

use std::collections::{BTreeSet, VecDeque};

use crosstie_routing::{Position, Time};

#[derive(Debug, Default)]
pub(super) struct Barriers {
    current: Option<Barrier>,
    /// Some subscription waits for the next barrier.
    is_wanted: bool,
    /// The number of the last barrier.
    last: u64,
    in_force: u64,
    /// Times of the unanswered pings.
    pings: VecDeque<Time>,
    /// The time of the last answered ping. Everything that reached the server before has been read here.
    read: Time,
}

#[derive(Debug)]
struct Barrier {
    begun: Time,
    asked_at: Time,
    /// Nodes that have not answered.
    asked: BTreeSet<u64>,
    /// Number of pings until its own is answered.
    pings: usize,
}

/// Time after which nodes that have not answered are asked again, or replaced.
const REPEAT_MS: u64 = 1_000;

impl Barriers {
    /// The position of a new subscription.
    pub(super) fn want(&mut self) -> Position {
        self.is_wanted = true;
        Position(self.last + 1)
    }

    pub(super) fn may_begin(&self) -> bool {
        self.is_wanted && self.current.is_none()
    }

    /// Begins a barrier; the caller asks these nodes and pings its server. Returns the number.
    pub(super) fn begin(&mut self, now: Time, asked: impl Iterator<Item = u64>) -> u64 {
        self.is_wanted = false;
        self.last += 1;
        self.note_ping(now);
        self.current = Some(Barrier {
            begun: now,
            asked_at: now,
            asked: asked.collect(),
            pings: self.pings.len(),
        });
        self.last
    }

    /// Whether asked nodes are overdue, or can no longer answer.
    pub(super) fn is_overdue(&self, now: Time, is_active: impl Fn(u64) -> bool) -> bool {
        self.current.as_ref().is_some_and(|barrier| {
            let is_gone = |asked: &u64| !is_active(*asked);
            let is_late = barrier.asked_at.after_ms(REPEAT_MS) <= now;
            !barrier.asked.is_empty() && (is_late || barrier.asked.iter().any(is_gone))
        })
    }

    /// Whether nodes have not answered the barrier after that time.
    pub(super) fn is_late(&self, now: Time, for_ms: u64) -> bool {
        let current = self.current.as_ref();
        current.is_some_and(|b| !b.asked.is_empty() && b.begun.after_ms(for_ms) <= now)
    }

    /// The nodes whose answers to a barrier are not among what was read until that time after it; the barrier stops
    /// waiting for them.
    pub(super) fn give_up_on(&mut self, for_ms: u64) -> Vec<u64> {
        let read = self.read;
        let late = self
            .current
            .as_mut()
            .filter(|barrier| barrier.begun.after_ms(for_ms) <= read);
        late.map_or_else(Vec::new, |barrier| {
            std::mem::take(&mut barrier.asked).into_iter().collect()
        })
    }

    /// Asks these nodes instead. Returns the number.
    pub(super) fn repeat(&mut self, now: Time, asked: impl Iterator<Item = u64>) -> u64 {
        if let Some(barrier) = &mut self.current {
            barrier.asked_at = now;
            barrier.asked = asked.collect();
        }
        self.last
    }

    pub(super) fn note_ping(&mut self, now: Time) {
        self.pings.push_back(now);
    }

    pub(super) fn has_pings(&self) -> bool {
        !self.pings.is_empty()
    }

    /// The time up to which this node has read everything that its server received.
    pub(super) fn read(&self) -> Time {
        self.read
    }

    /// Handles a pong. Returns whether the barrier may be complete.
    pub(super) fn handle_pong(&mut self) -> bool {
        self.read = self.pings.pop_front().unwrap_or(self.read);
        let Some(barrier) = &mut self.current else {
            return false;
        };
        barrier.pings = barrier.pings.saturating_sub(1);
        barrier.pings == 0
    }

    /// Handles a node's answer. Returns whether it was awaited.
    pub(super) fn handle_passed(&mut self, number: u64, by: u64) -> bool {
        let current = self.current.as_mut().filter(|_| number == self.last);
        current.is_some_and(|barrier| barrier.asked.remove(&by))
    }

    /// Ends the barrier if it is complete. Returns its beginning.
    pub(super) fn settle(&mut self) -> Option<Time> {
        let is_passed = |barrier: &mut Barrier| barrier.asked.is_empty() && barrier.pings == 0;
        let passed = self.current.take_if(is_passed)?;
        self.in_force = self.last;
        Some(passed.begun)
    }

    pub(super) fn in_force(&self) -> Position {
        Position(self.in_force)
    }

    /// The connection has ended: waiting subscriptions wait for the next one, or are in force at once.
    pub(super) fn give_up(&mut self, waits_for_nothing: bool) {
        let had_one = self.current.take().is_some();
        if waits_for_nothing {
            self.last += u64::from(self.is_wanted);
            self.in_force = self.last;
            self.is_wanted = false;
        } else {
            self.is_wanted |= had_one;
        }
    }

    /// A new connection answers only its own pings.
    pub(super) fn forget_pings(&mut self) {
        self.pings.clear();
    }
}
