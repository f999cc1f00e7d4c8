//! How much one peer's input may cost before it is others' turn.

use std::time::{Duration, Instant};

/// What is left of a turn.
///
/// The code that works for a peer says after each item how many *steps* it took, a step being some 50 to
/// 100 ns: a receiver, a node of a pattern, a message that is moved. A turn is over by steps or by
/// time, whichever is first. The clock is looked at once in many steps only, so that a turn in
/// which little happens costs a look at none.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    begun: Instant,
    steps: u32,
    steps_at_look: u32,
}

/// What a thread may be busy for one peer, and what a realm's or a vhost's lock may be held for.
const TURN_MAX: Duration = Duration::from_millis(1);
/// The same in steps: the longest turn on a clock that stands still.
const STEPS_MAX: u32 = 16_384;
/// Steps between two looks at the clock.
const STEPS_PER_LOOK: u32 = 256;
/// What an item costs that says nothing of steps: to be found in the input, to be decoded.
const STEPS_PER_ITEM: u32 = 8;

impl Budget {
    /// A turn that begins now.
    pub fn begin(now: Instant) -> Self {
        Self {
            begun: now,
            steps: 0,
            steps_at_look: STEPS_PER_LOOK,
        }
    }

    /// Notes an item that took so many steps beside being there; whether the turn is over.
    #[inline]
    pub fn spend(&mut self, steps: u32) -> bool {
        let steps = steps.saturating_add(STEPS_PER_ITEM);
        self.steps = self.steps.saturating_add(steps);
        self.steps >= self.steps_at_look && self.look()
    }

    /// Steps that are left, if time is not up before.
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
        // A clock that stands still: a time to come is no time ago.
        let mut budget = Budget::begin(Instant::now() + Duration::from_secs(3600));
        let items = (1..).find(|_| budget.spend(0));
        assert_eq!(items, Some(STEPS_MAX as usize / STEPS_PER_ITEM as usize));
        assert_eq!(budget.steps_left(), 0);
    }

    #[test]
    fn one_item_may_be_all_of_it() {
        let mut budget = Budget::begin(Instant::now() + Duration::from_secs(3600));
        assert!(budget.spend(u32::MAX));
    }

    #[test]
    fn a_turn_ends_by_time() {
        let begun = Instant::now().checked_sub(TURN_MAX);
        let Some(begun) = begun else { return };
        let mut budget = Budget::begin(begun);
        assert!(!budget.spend(0), "nobody looks at the clock for one item");
        assert!(budget.spend(STEPS_PER_LOOK));
    }
}
