//! Live messages of the log that the owner cannot read, although it is to write them again or to copy them.

use std::time::{Duration, Instant};

/// Reads that fail, one after the other.
pub(super) struct Unread {
    why: String,
    /// The first failure, and the last one.
    since: Instant,
    last: Instant,
}

/// After this time it is an alarm: an election takes less. Without another attempt, the alarm ends after the same time.
pub(super) const LASTING: Duration = Duration::from_secs(15);

impl Unread {
    /// A failure behind those before.
    pub(super) fn after(before: Option<&Self>, why: String) -> Self {
        let now = Instant::now();
        let before = before.filter(|before| before.last.elapsed() < LASTING);
        Self {
            why,
            since: before.map_or(now, |before| before.since),
            last: now,
        }
    }

    /// The reason, if reads have failed for long.
    pub(super) fn alarm(&self) -> Option<String> {
        let lasts = self.since.elapsed() >= LASTING && self.last.elapsed() < LASTING;
        let why = &self.why;
        lasts.then(|| format!("messages in its log cannot be read, retrying: {why}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_that_fail_for_long_are_an_alarm_until_one_succeeds_or_none_is_tried() {
        let ago = |s| Instant::now().checked_sub(Duration::from_secs(s));
        let failed = |since: u64, last: u64| {
            let (why, since, last) = ("no answer".to_owned(), ago(since)?, ago(last)?);
            Some(Unread { why, since, last })
        };
        let first = Unread::after(None, "no answer".to_owned());
        assert_eq!(first.alarm(), None);
        let (Some(lasting), Some(former)) = (failed(20, 1), failed(40, 20)) else {
            return;
        };
        let alarm = lasting.alarm();
        assert!(alarm.is_some_and(|alarm| alarm.ends_with("retrying: no answer")));
        let again = Unread::after(Some(&lasting), "no majority".to_owned());
        assert!(again.alarm().is_some());
        assert_eq!(former.alarm(), None);
        let anew = Unread::after(Some(&former), "no answer".to_owned());
        assert_eq!(anew.alarm(), None);
    }
}
