//! Log lines that appear at most once an hour for each kind.

use std::time::{Duration, Instant};

use crosstie_wamp::Serializer;
use parking_lot::Mutex;

const HOUR: Duration = Duration::from_secs(3_600);

/// The times of the last lines. The number of kinds is bounded by the program's texts.
#[derive(Default)]
pub(crate) struct HourlyLines(Mutex<Vec<(Kind, Instant)>>);

type Kind = (&'static str, Serializer);

impl HourlyLines {
    /// Whether a line of this kind may be written: none was in the last hour.
    pub(crate) fn may_say(&self, text: &'static str, serializer: Serializer) -> bool {
        self.may_say_at(Instant::now(), (text, serializer))
    }

    fn may_say_at(&self, now: Instant, kind: Kind) -> bool {
        let mut said = self.0.lock();
        match said.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, last)) if now.saturating_duration_since(*last) < HOUR => return false,
            Some((_, last)) => *last = now,
            None => said.push((kind, now)),
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_logged_once_an_hour() {
        let lines = HourlyLines::default();
        let now = Instant::now();
        let kind = ("NaN", Serializer::Json);
        assert!(lines.may_say_at(now, kind));
        assert!(!lines.may_say_at(now + HOUR / 2, kind));
        assert!(lines.may_say_at(now, ("NaN", Serializer::Cbor)));
        assert!(lines.may_say_at(now + HOUR, kind));
    }
}
