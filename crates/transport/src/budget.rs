//! Bounds on one peer's turn, so that its input does not delay others.

use std::time::{Duration, Instant};

/// The remainder of a turn.
///
/// After each item the caller reports the *steps* of its work, a step being some 50 to 100 ns: a receiver, a node of a
/// pattern, a message that is moved. A turn ends by steps or by time, whichever is first. The clock is read only once
/// in many steps, so that a short turn costs one reading at most.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    begun: Instant,
    steps: u32,
    steps_at_look: u32,
}

/// The longest time that a thread works for one peer, and for which a realm's or a vhost's lock is held.
const TURN_MAX: Duration = Duration::from_millis(1);
/// The same in steps: the longest turn on a clock that stands still.
const STEPS_MAX: u32 = 16_384;
/// Steps between two readings of the clock.
const STEPS_PER_LOOK: u32 = 256;
/// The cost of an item that reports no steps: finding its end in the input and decoding it.
const STEPS_PER_ITEM: u32 = 8;

impl Budget {
    /// Starts a turn.
    pub fn begin(now: Instant) -> Self {
        Self {
            begun: now,
            steps: 0,
            steps_at_look: STEPS_PER_LOOK,
        }
    }

    /// Records an item with that many additional steps; returns whether the turn is over.
    #[inline]
    pub fn spend(&mut self, steps: u32) -> bool {
        let steps = steps.saturating_add(STEPS_PER_ITEM);
        self.steps = self.steps.saturating_add(steps);
        self.steps >= self.steps_at_look && self.look()
    }

    /// The remaining steps, unless time is up before.
    pub fn steps_left(&self) -> u32 {
        STEPS_MAX.saturating_sub(self.steps)
    }

    #[cold]
    fn look(&mut self) -> bool {
        self.steps_at_look = self.steps.saturating_add(STEPS_PER_LOOK);
        self.steps >= STEPS_MAX || self.begun.elapsed() >= TURN_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_ends_by_steps() {
        // A clock that stands still: a time in the future never elapses.
        let mut budget = Budget::begin(Instant::now() + Duration::from_secs(3600));
        let items = (1..).find(|_| budget.spend(0));
        assert_eq!(items, Some(STEPS_MAX as usize / STEPS_PER_ITEM as usize));
        assert_eq!(budget.steps_left(), 0);
    }

    #[test]
    fn one_item_may_use_up_a_turn() {
        let mut budget = Budget::begin(Instant::now() + Duration::from_secs(3600));
        assert!(budget.spend(u32::MAX));
    }

    #[test]
    fn a_turn_ends_by_time() {
        let begun = Instant::now().checked_sub(TURN_MAX);
        let Some(begun) = begun else { return };
        let mut budget = Budget::begin(begun);
        assert!(!budget.spend(0), "the clock is not read for one item");
        assert!(budget.spend(STEPS_PER_LOOK));
    }
}
