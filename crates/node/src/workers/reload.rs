//! When a guest is started again after a change of its files.

use std::time::Duration;

use crate::process::Backoff;

/// What a process writes while it ends is told within this time: before the next run, not after it.
const SETTLED_WITHIN: Duration = Duration::from_millis(300);

/// A run that lasted so long was not ended by what it wrote itself when it began.
const WELL: Duration = Duration::from_secs(5);

/// The pauses before starts that changes of files bring about: short, but longer and longer for a
/// guest that changes its own files.
#[derive(Default)]
pub(crate) struct Reload {
    backoff: Backoff,
}

impl Reload {
    /// The pause before the next start, after a run of that length.
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
    fn a_guest_that_changes_its_own_files_waits_longer_and_longer() {
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
