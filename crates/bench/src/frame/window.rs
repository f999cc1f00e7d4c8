//! The window of a round: from the word to go a moment, the warm-up, the time that is measured.

use std::time::{Duration, Instant};

use crate::load::drive::{self, monotonic_ns};

/// From the word to go until the warm-up begins: for the word to reach everybody.
const COUNTDOWN: Duration = Duration::from_millis(5);

/// A window that is to come, by the bench's clock and by its drivers'.
pub(crate) struct Ahead {
    pub(crate) start: Instant,
    pub(crate) end: Instant,
    /// What drivers are told.
    pub(crate) told: drive::Window,
}

impl Ahead {
    pub(crate) fn of(warm_up: Duration, measured: Duration) -> Self {
        let ahead = COUNTDOWN + warm_up;
        let start = Instant::now() + ahead;
        let start_ns = monotonic_ns() + ahead.as_nanos() as u64;
        Self {
            start,
            end: start + measured,
            told: drive::Window {
                start_ns,
                end_ns: start_ns + measured.as_nanos() as u64,
            },
        }
    }
}
