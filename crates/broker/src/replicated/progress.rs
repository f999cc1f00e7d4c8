//! Whether a log still acknowledges entries, although it has not reached the next position.
//!
//! One input may need many entries: the purge of a deep queue is written as the departure of each of its messages. None of
//! these entries confirms a position until the last, and each shows that the log takes what the owner writes.

use std::time::{Duration, Instant};

use crosstie_ledger::Sequence;

/// When a log has last acknowledged an entry that was awaited.
#[derive(Clone, Copy, Debug)]
pub(super) struct Progress {
    acknowledged: Sequence,
    at: Instant,
}

impl Progress {
    pub(super) fn begin(now: Instant) -> Self {
        Self {
            acknowledged: Sequence(0),
            at: now,
        }
    }

    /// Notes the last acknowledged entry. `is_idle`: no entry is awaited.
    pub(super) fn note(&mut self, now: Instant, acknowledged: Sequence, is_idle: bool) {
        if is_idle || acknowledged > self.acknowledged {
            self.acknowledged = acknowledged;
            self.at = now;
        }
    }

    /// How long the log has acknowledged none of the entries that it should have.
    pub(super) fn stalled(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_log_that_acknowledges_no_awaited_entry_stalls() {
        let begun = Instant::now();
        let mut progress = Progress::begin(begun);
        // Seconds, the last acknowledged entry, whether none is awaited, and for how long the log has stalled.
        let steps = [
            (1, 5, false, 0),
            (2, 5, false, 1),
            // An entry of many that end with the next position.
            (29, 6, false, 0),
            (50, 6, false, 21),
            (51, 6, true, 0),
            (52, 6, false, 1),
            (53, 7, false, 0),
        ];
        for (s, acknowledged, is_idle, stalled) in steps {
            let now = begun + Duration::from_secs(s);
            progress.note(now, Sequence(acknowledged), is_idle);
            assert_eq!(progress.stalled(now).as_secs(), stalled, "after {s} s");
        }
    }
}
