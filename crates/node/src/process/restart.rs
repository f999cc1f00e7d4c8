//! The delays between restarts of a process.

use std::time::Duration;

const FIRST: Duration = Duration::from_millis(200);
const LONGEST: Duration = Duration::from_secs(30);
/// After this run time a process counts as healthy, and its end as a new failure.
const WELL: Duration = Duration::from_secs(60);

/// The delay before each start of one process: doubles each time, from 200 ms to 30 s.
///
/// Drive it: [`Backoff::next_delay`] once for each end, with the time that the process was up.
#[derive(Clone, Debug)]
pub struct Backoff {
    next: Duration,
    ends_in_a_row: u32,
}

impl Default for Backoff {
    fn default() -> Self {
        Self {
            next: FIRST,
            ends_in_a_row: 0,
        }
    }
}

impl Backoff {
    pub fn next_delay(&mut self, was_up: Duration) -> Duration {
        if Self::was_well(was_up) {
            *self = Self::default();
        }
        self.ends_in_a_row = self.ends_in_a_row.saturating_add(1);
        let delay = self.next;
        self.next = (delay * 2).min(LONGEST);
        delay
    }

    /// Number of ends since the process was last healthy.
    pub fn ends_in_a_row(&self) -> u32 {
        self.ends_in_a_row
    }

    /// Whether a process with that run time counts as healthy.
    pub fn was_well(was_up: Duration) -> bool {
        was_up >= WELL
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_to_a_bound_and_starts_anew_after_a_good_run() {
        let mut backoff = Backoff::default();
        let mut delays = |ups: &[u64]| -> Vec<u128> {
            ups.iter()
                .map(|&up| backoff.next_delay(Duration::from_secs(up)).as_millis())
                .collect()
        };
        assert_eq!(
            delays(&[0; 10]),
            [
                200, 400, 800, 1_600, 3_200, 6_400, 12_800, 25_600, 30_000, 30_000
            ]
        );
        assert_eq!(delays(&[59, 60, 0, 3_600]), [30_000, 200, 400, 200]);
        assert_eq!(backoff.ends_in_a_row(), 1);
        let _ = backoff.next_delay(Duration::ZERO);
        assert_eq!(backoff.ends_in_a_row(), 2);
    }
}
