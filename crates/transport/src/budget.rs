//! Bounds on one peer's turn, so that its input does not delay others.

use std::cell::Cell;
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
/// One of so many turns that do not read the clock is measured. A prime number, so that no pattern of turns hides.
const SHORT_TURNS: u32 = 61;

thread_local! {
    /// Short turns of this thread until one is measured.
    static UNMEASURED: Cell<u32> = const { Cell::new(SHORT_TURNS - 1) };
}

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

    /// Ends the turn. Returns its length and the number of turns that it stands for, if it is measured: of turns that have
    /// read the clock each one is, of shorter ones one in so many.
    #[inline]
    pub fn end(&self) -> Option<(Duration, u64)> {
        let weight = match self.steps_at_look > STEPS_PER_LOOK {
            true => 1,
            false => {
                let left = UNMEASURED.get();
                UNMEASURED.set(left.wrapping_sub(1));
                if left != 0 {
                    return None;
                }
                u64::from(SHORT_TURNS)
            }
        };
        Some(self.measure(weight))
    }

    #[cold]
    fn measure(&self, weight: u64) -> (Duration, u64) {
        if weight > 1 {
            UNMEASURED.set(SHORT_TURNS - 1);
        }
        (self.begun.elapsed(), weight)
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
    fn long_turns_are_measured_and_short_ones_now_and_then() {
        let mut long = Budget::begin(Instant::now());
        long.spend(STEPS_PER_LOOK);
        assert_eq!(long.end().map(|(_, weight)| weight), Some(1));
        let short = Budget::begin(Instant::now());
        let weights: u64 = (0..SHORT_TURNS * 3)
            .filter_map(|_| short.end())
            .map(|(_, weight)| weight)
            .sum();
        assert_eq!(weights, u64::from(SHORT_TURNS) * 3);
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
