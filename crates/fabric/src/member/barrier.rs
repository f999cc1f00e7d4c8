//! Barriers: how a node learns that others know what it wants.
//!
//! A server tells others what its clients want in the order in which it was asked to, and before what they send
//! later. So a note that has come to a node at another server says that this server knows; and the answer to a
//! ping, that the own one does. One barrier is under way at a time: what is wanted meanwhile waits for the next.

use std::collections::BTreeSet;

use crosstie_routing::{Position, Time};

#[derive(Debug, Default)]
pub(super) struct Barriers {
    current: Option<Barrier>,
    /// Something waits for the next one.
    is_wanted: bool,
    /// The number of the last one that was begun.
    last: u64,
    in_force: u64,
    /// Pings that the server has not answered.
    pings: u64,
}

#[derive(Debug)]
struct Barrier {
    begun: Time,
    asked_at: Time,
    /// Those who have not answered.
    asked: BTreeSet<u64>,
    /// Pings to be answered until its own is.
    pings: u64,
}

/// Who has not answered by then is asked again, or another one.
const REPEAT_MS: u64 = 1_000;

impl Barriers {
    /// The position of what is wanted now.
    pub(super) fn want(&mut self) -> Position {
        self.is_wanted = true;
        Position(self.last + 1)
    }

    pub(super) fn may_begin(&self) -> bool {
        self.is_wanted && self.current.is_none()
    }

    /// Begins one, of which its owner asks these and pings its server; its number.
    pub(super) fn begin(&mut self, now: Time, asked: impl Iterator<Item = u64>) -> u64 {
        self.is_wanted = false;
        self.last += 1;
        self.pings += 1;
        self.current = Some(Barrier {
            begun: now,
            asked_at: now,
            asked: asked.collect(),
            pings: self.pings,
        });
        self.last
    }

    /// Whether those who were asked should have answered, or cannot any more.
    pub(super) fn is_overdue(&self, now: Time, is_active: impl Fn(u64) -> bool) -> bool {
        self.current.as_ref().is_some_and(|barrier| {
            let is_gone = |asked: &u64| !is_active(*asked);
            let is_late = barrier.asked_at.after_ms(REPEAT_MS) <= now;
            !barrier.asked.is_empty() && (is_late || barrier.asked.iter().any(is_gone))
        })
    }

    /// Who has not answered a barrier that was begun so long ago; it waits for them no longer.
    pub(super) fn give_up_on(&mut self, now: Time, for_ms: u64) -> Vec<u64> {
        let late = self
            .current
            .as_mut()
            .filter(|barrier| barrier.begun.after_ms(for_ms) <= now);
        late.map_or_else(Vec::new, |barrier| {
            std::mem::take(&mut barrier.asked).into_iter().collect()
        })
    }

    /// Asks these instead; the number.
    pub(super) fn repeat(&mut self, now: Time, asked: impl Iterator<Item = u64>) -> u64 {
        if let Some(barrier) = &mut self.current {
            barrier.asked_at = now;
            barrier.asked = asked.collect();
        }
        self.last
    }

    pub(super) fn note_ping(&mut self) {
        self.pings += 1;
    }

    pub(super) fn has_pings(&self) -> bool {
        self.pings > 0
    }

    /// Whether the present barrier may be passed by that.
    pub(super) fn handle_pong(&mut self) -> bool {
        self.pings = self.pings.saturating_sub(1);
        let Some(barrier) = &mut self.current else {
            return false;
        };
        barrier.pings = barrier.pings.saturating_sub(1);
        barrier.pings == 0
    }

    /// Likewise.
    pub(super) fn handle_passed(&mut self, number: u64, by: u64) -> bool {
        let current = self.current.as_mut().filter(|_| number == self.last);
        current.is_some_and(|barrier| barrier.asked.remove(&by))
    }

    /// Ends the present barrier if it is passed; when it was begun.
    pub(super) fn settle(&mut self) -> Option<Time> {
        let is_passed = |barrier: &mut Barrier| barrier.asked.is_empty() && barrier.pings == 0;
        let passed = self.current.take_if(is_passed)?;
        self.in_force = self.last;
        Some(passed.begun)
    }

    pub(super) fn in_force(&self) -> Position {
        Position(self.in_force)
    }

    /// The connection has gone: who waits, waits for the next one, or for nothing.
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

    /// A new connection answers its own pings only.
    pub(super) fn forget_pings(&mut self) {
        self.pings = 0;
    }
}
