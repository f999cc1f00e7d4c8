//! The delays between restarts of a guest whose files change.

use std::time::Duration;

use crate::process::Backoff;

/// Changes that a process makes while it ends are reported within this time: before the next run.
const SETTLED_WITHIN: Duration = Duration::from_millis(300);

/// After this run time, the end was not caused by the guest's own initial writes.
const WELL: Duration = Duration::from_secs(5);

/// The delays before restarts for changed files: short, but growing for a guest that changes its own files.
#[derive(Default)]
pub(crate) struct Reload {
    backoff: Backoff,
}

impl Reload {
    /// The delay before the next start, after a run of that length.
    pub(crate) fn next_delay(&mut self, was_up: Duration) -> Duration {
        if was_up >= WELL {
            *self = Self::default();
            return SETTLED_WITHIN;
        }
        self.backoff.next_delay(was_up).max(SETTLED_WITHIN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guest_that_changes_its_own_files_waits_longer_each_time() {
        let mut reload = Reload::default();
        let mut delays = |ups: &[u64]| -> Vec<u128> {
            ups.iter()
                .map(|&up| reload.next_delay(Duration::from_secs(up)).as_millis())
                .collect()
        };
        assert_eq!(delays(&[100, 0, 1, 4, 0]), [300, 300, 400, 800, 1_600]);
        assert_eq!(delays(&[0; 6])[5], 30_000);
        assert_eq!(delays(&[5, 0, 0]), [300, 300, 400]);
    }
}
