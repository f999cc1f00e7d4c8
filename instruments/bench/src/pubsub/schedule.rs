//! The due times of publications. Publisher and subscribers compute them from the same few numbers, so that a latency
//! begins at the intended time without a clock in the message: a publisher or router that falls behind cannot hide its
//! own delay.

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Schedule {
    /// The machine's monotonic clock when the first batch is due.
    pub start_ns: u64,
    /// The first publication's number. Numbers continue from run to run, so that a late event of the previous run is
    /// not mistaken for one of this.
    pub first: u64,
    pub pace: Pace,
    /// Events that arrive within these are counted in rates.
    pub window_start_ns: u64,
    pub window_end_ns: u64,
}

/// The rule of when to publish.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum Pace {
    /// Batches at fixed times, independent of the router.
    Timed {
        period_ns: f64,
        /// Publications in one batch.
        batch: u64,
        batches: u64,
        /// The first batches are not measured.
        warm_up_batches: u64,
    },
    /// As fast as events come back: so many publications are in flight until the window ends.
    Saturated { outstanding: u64 },
}

impl Schedule {
    /// The due time of a batch.
    pub(super) fn batch_due_ns(&self, batch: u64) -> u64 {
        match self.pace {
            Pace::Timed { period_ns, .. } => {
                self.start_ns + (batch as f64 * period_ns).round() as u64
            }
            Pace::Saturated { .. } => self.start_ns,
        }
    }

    /// The start of a publication's latency; `None` if it is not measured.
    pub(super) fn measured_from_ns(&self, publication: u64) -> Option<u64> {
        let Pace::Timed {
            batch,
            warm_up_batches,
            ..
        } = self.pace
        else {
            return None;
        };
        let at = publication.checked_sub(self.first)? / batch;
        (at >= warm_up_batches).then(|| self.batch_due_ns(at))
    }

    /// Whether an event at this moment counts in a rate.
    pub(super) fn in_window(&self, now_ns: u64) -> bool {
        (self.window_start_ns..self.window_end_ns).contains(&now_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_begin_at_the_intended_instant() {
        let schedule = Schedule {
            start_ns: 1_000,
            first: 11,
            pace: Pace::Timed {
                period_ns: 33.3,
                batch: 2,
                batches: 10,
                warm_up_batches: 1,
            },
            window_start_ns: 1_033,
            window_end_ns: 1_333,
        };
        #[track_caller]
        fn check(schedule: &Schedule, publication: u64, expected: Option<u64>) {
            assert_eq!(schedule.measured_from_ns(publication), expected);
        }
        check(&schedule, 3, None);
        check(&schedule, 11, None);
        check(&schedule, 12, None);
        check(&schedule, 13, Some(1_033));
        check(&schedule, 14, Some(1_033));
        check(&schedule, 15, Some(1_067));
        check(&schedule, 31, Some(1_333));
        assert!(schedule.in_window(1_033) && !schedule.in_window(1_333));
    }
}
