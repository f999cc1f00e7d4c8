//! The store's time.

use std::time::{Instant, SystemTime};

use crate::segments::bytes::TIME_MAX_MS;

/// Time that is never before the time of its last commit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    start: Instant,
    start_ms: u64,
}

impl Clock {
    /// At least from that time on.
    pub(crate) fn begin(from_ms: u64) -> Self {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let wall_ms = since.map_or(0, |since| since.as_millis() as u64);
        Self {
            start: Instant::now(),
            start_ms: wall_ms.max(from_ms).min(TIME_MAX_MS),
        }
    }

    pub(crate) fn now_ms(&self) -> u64 {
        let now_ms = self.start_ms + self.start.elapsed().as_millis() as u64;
        now_ms.min(TIME_MAX_MS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_from_an_impossible_time_goes_on() {
        for from_ms in [TIME_MAX_MS - 1, u64::MAX] {
            let now_ms = Clock::begin(from_ms).now_ms();
            assert!((TIME_MAX_MS - 1..=TIME_MAX_MS).contains(&now_ms));
        }
    }
}
