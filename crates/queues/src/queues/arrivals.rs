//! The times at which a queue's messages arrived, to tell for how long they waited. A time for each message would take
//! eight bytes of each; a few marks, each for all messages from a place on, tell it to a tenth of the longest wait.

use std::collections::VecDeque;

use crate::Time;

/// Maximum number of marks of a queue.
const MARKS_MAX: usize = 32;

#[derive(Debug, Default)]
pub(super) struct Arrivals {
    /// Places, each with the time at which the first message from there on arrived.
    marks: VecDeque<(i64, Time)>,
    /// Least time between two marks.
    step_ms: u64,
}

impl Arrivals {
    /// Notes a message that is put in the line.
    #[inline]
    pub(super) fn note(&mut self, place: i64, now: Time) {
        let last = self.marks.back();
        if last.is_none_or(|(_, at)| now.0.saturating_sub(at.0) > self.step_ms) {
            self.mark(place, now);
        }
    }

    #[inline(never)]
    fn mark(&mut self, place: i64, now: Time) {
        self.marks.push_back((place, now));
        if self.marks.len() <= MARKS_MAX {
            return;
        }
        self.step_ms = self.fitting_step();
        let mut next = self.marks.front().map_or(0, |(_, first)| first.0);
        self.marks.retain(|(_, at)| {
            let is_kept = at.0 >= next;
            if is_kept {
                next = at.0 + self.step_ms;
            }
            is_kept
        });
    }

    /// The step by which half of the marks cover the time from the first to the last.
    fn fitting_step(&self) -> u64 {
        let ends = self.marks.front().zip(self.marks.back());
        let range = ends.map_or(0, |((_, first), (_, last))| last.0.saturating_sub(first.0));
        range / (MARKS_MAX as u64 / 2)
    }

    /// Forgets the marks that no message from this place on needs: earlier ones have left, whatever their way.
    #[inline]
    pub(super) fn forget_before(&mut self, place: i64) {
        let before = self.marks.len();
        while let Some((next, _)) = self.marks.get(1)
            && *next <= place
        {
            self.marks.pop_front();
        }
        if self.marks.len() < before {
            self.step_ms = self.fitting_step();
        }
    }

    /// The milliseconds that a message of that place has waited; `None` if it arrived before all marks. Messages behind
    /// it must be asked for after it.
    #[inline]
    pub(super) fn waited(&mut self, place: i64, now: Time) -> Option<u64> {
        self.forget_before(place);
        let (first, at) = self.marks.front()?;
        (*first <= place).then(|| now.0.saturating_sub(at.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_known_to_a_tenth_of_the_longest() {
        let mut arrivals = Arrivals::default();
        for place in 0..100_000 {
            arrivals.note(place, Time(place as u64 / 10));
            assert!(arrivals.marks.len() <= MARKS_MAX);
        }
        let now = 20_000;
        for place in 0..100_000 {
            let waited = arrivals.waited(place, Time(now)).expect("is known");
            let exactly = now - place as u64 / 10;
            assert!(waited >= exactly, "{place}");
            assert!(waited - exactly <= 10_000 / 10, "{place}: {waited}");
        }
    }

    #[test]
    fn messages_that_leave_otherwise_count_no_more() {
        let mut arrivals = Arrivals::default();
        // A backlog of an hour, whose messages all expire but the last.
        for place in 0..3_600 {
            arrivals.note(place, Time(place as u64 * 1_000));
        }
        let now = 3_600_000;
        for place in 3_600..3_700 {
            arrivals.forget_before(3_599);
            arrivals.note(place, Time(now + place as u64));
        }
        let waited = arrivals.waited(3_699, Time(now + 3_699 + 10));
        assert!(waited.is_some_and(|waited| waited <= 200), "{waited:?}");
    }

    #[test]
    fn a_short_wait_is_known_exactly() {
        let mut arrivals = Arrivals::default();
        for (place, at) in [(5, 1000), (6, 1000), (7, 1003)] {
            arrivals.note(place, Time(at));
        }
        assert_eq!(arrivals.waited(4, Time(1010)), None);
        assert_eq!(arrivals.waited(5, Time(1010)), Some(10));
        assert_eq!(arrivals.waited(6, Time(1010)), Some(10));
        assert_eq!(arrivals.waited(7, Time(1010)), Some(7));
        assert_eq!(arrivals.waited(5, Time(1010)), None);
    }
}
