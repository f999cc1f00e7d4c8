//! The time of vhosts.

use std::time::{Duration, Instant, SystemTime};

use crosstie_queues::Time;

/// Precision of timers, in milliseconds: nothing happens earlier than that before it is due.
const GRANULARITY_MS: u64 = 1;

/// The vhost's time: wall clock time at the start, or the store's if that is later, then monotonic.
#[derive(Clone, Copy)]
pub struct Clock {
    start: Instant,
    start_ms: u64,
}

impl Clock {
    pub fn begin() -> Self {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        Self::begin_at(since.map_or(0, |since| since.as_millis() as u64))
    }

    /// The present is that many milliseconds after 1970.
    pub fn begin_at(start_ms: u64) -> Self {
        Self {
            start: Instant::now(),
            start_ms,
        }
    }

    pub fn time(&self, at: Instant) -> Time {
        let elapsed = at.saturating_duration_since(self.start);
        Time(self.start_ms + elapsed.as_millis() as u64)
    }

    /// When a timer that is due at that time wakes its task: a millisecond earlier, because the runtime rounds up twice.
    pub(super) fn wake_at(&self, Time(due_ms): Time) -> Instant {
        self.start + Duration::from_millis(due_ms.saturating_sub(self.start_ms + GRANULARITY_MS))
    }

    /// The time up to which a task that runs at `at` does what is due. It includes whatever the task was woken for.
    pub(super) fn due_by(&self, at: Instant) -> Time {
        self.time(at + Duration::from_millis(GRANULARITY_MS))
    }
}

/// Seconds since 1970, by which tokens end.
pub(crate) fn unix_s() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_that_is_woken_finds_its_work_due() {
        let clock = Clock::begin_at(1_764_000_000_000);
        for due_ms in (0..5).chain(clock.start_ms - 2..clock.start_ms + 50) {
            let due = Time(due_ms);
            let woken = clock.wake_at(due);
            assert!(
                clock.due_by(woken) >= due,
                "it would be woken again for {due:?}"
            );
            let before = woken.checked_sub(Duration::from_nanos(1));
            let before = before.filter(|before| *before >= clock.start);
            assert!(
                before.is_none_or(|before| clock.due_by(before) < due),
                "{due:?}"
            );
        }
    }
}
