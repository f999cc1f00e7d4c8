//! Checks that a receiver got every message once and in order.

use crate::load::Faults;

/// The state of one subscriber. Publications are numbered without gaps.
#[derive(Debug)]
pub(crate) struct Sequence {
    next: u64,
    /// Numbers that were skipped and may still arrive, as ranges `from..to`.
    missing: Vec<(u64, u64)>,
    /// Those of ranges that were dropped.
    forgotten: u64,
}

/// Maximum number of ranges. A router that drops without end must not fill the instrument's memory. Late arrivals after
/// so many gaps count as doubled, and the run failed long before.
const MISSING_MAX: usize = 256;

impl Sequence {
    pub(crate) fn new(first: u64) -> Self {
        Self {
            next: first,
            missing: Vec::new(),
            forgotten: 0,
        }
    }

    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// Records one arrival; false for a repetition.
    pub(crate) fn arrived(&mut self, number: u64, faults: &mut Faults) -> bool {
        if number == self.next {
            self.next += 1;
            return true;
        }
        if number > self.next {
            if self.missing.len() < MISSING_MAX {
                self.missing.push((self.next, number));
            } else {
                self.forgotten += number - self.next;
            }
            self.next = number + 1;
            return true;
        }
        let gap = self
            .missing
            .iter()
            .position(|(from, to)| (*from..*to).contains(&number));
        let Some(gap) = gap else {
            faults.doubled += 1;
            return false;
        };
        faults.reordered += 1;
        let (from, to) = self.missing.swap_remove(gap);
        let rest = [(from, number), (number + 1, to)];
        self.missing
            .extend(rest.into_iter().filter(|(from, to)| from < to));
        true
    }

    /// The number of publications before `end` that never arrived.
    pub(crate) fn lost(&self, end: u64) -> u64 {
        let missing: u64 = self.missing.iter().map(|(from, to)| to - from).sum();
        missing + self.forgotten + end.saturating_sub(self.next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrivals_are_checked() {
        #[track_caller]
        fn check(arrivals: &[u64], lost: u64, reordered: u64, doubled: u64) {
            let mut sequence = Sequence::new(1);
            let mut faults = Faults::default();
            for number in arrivals {
                sequence.arrived(*number, &mut faults);
            }
            assert_eq!(sequence.lost(6), lost, "lost");
            let expected = Faults {
                reordered,
                doubled,
                ..Faults::default()
            };
            assert_eq!(faults, expected);
        }
        check(&[1, 2, 3, 4, 5], 0, 0, 0);
        check(&[], 5, 0, 0);
        check(&[1, 2, 4, 5], 1, 0, 0);
        check(&[1, 5], 3, 0, 0);
        check(&[1, 3, 2, 4, 5], 0, 1, 0);
        check(&[1, 5, 3, 2, 4], 0, 3, 0);
        check(&[1, 1, 2, 3, 4, 5], 0, 0, 1);
        check(&[1, 3, 2, 2, 4, 5], 0, 1, 1);
    }

    #[test]
    fn gaps_without_end_are_only_counted() {
        let mut sequence = Sequence::new(0);
        let mut faults = Faults::default();
        for number in (1..10_000).step_by(2) {
            sequence.arrived(number, &mut faults);
        }
        assert_eq!(sequence.lost(10_000), 5_000);
        assert!(sequence.missing.len() <= MISSING_MAX);
    }
}
