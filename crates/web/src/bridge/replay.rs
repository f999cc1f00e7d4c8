//! Remembers signed requests, so that each is accepted only once.

use std::collections::HashSet;
use std::time::Duration;

/// Accepted requests, remembered as long as they would be valid.
///
/// A request is valid from `delta` before its timestamp until `delta` after it, so that it must be remembered for twice
/// that time: in the present generation or the previous one, each of which lasts as long.
#[derive(Debug)]
pub struct Taken {
    delta: Duration,
    entries_max: usize,
    /// The beginning of the present generation, since 1970.
    began: Duration,
    present: HashSet<[u8; 16]>,
    before: HashSet<[u8; 16]>,
}

/// The verdict on a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    New,
    Again,
    /// No room to remember it: it must be rejected.
    Full,
}

impl Taken {
    pub fn new(delta: Duration, entries_max: usize) -> Self {
        Self {
            delta,
            entries_max,
            began: Duration::ZERO,
            present: HashSet::new(),
            before: HashSet::new(),
        }
    }

    /// Judges a request with that signature at `now`, which is since 1970.
    pub fn take(&mut self, now: Duration, signature: &[u8; 32]) -> Verdict {
        let lasts = self.delta * 2;
        let age = now.saturating_sub(self.began);
        if age >= lasts {
            self.before = match age < lasts * 2 {
                true => std::mem::take(&mut self.present),
                false => HashSet::new(),
            };
            self.present = HashSet::new();
            self.began = now;
        }
        // Half of the signature is long enough to be unique.
        let Some(entry) = signature.first_chunk::<16>() else {
            return Verdict::Full;
        };
        if self.present.contains(entry) || self.before.contains(entry) {
            return Verdict::Again;
        }
        if self.present.len() + self.before.len() >= self.entries_max {
            return Verdict::Full;
        }
        self.present.insert(*entry);
        Verdict::New
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_accepted_once_while_valid() {
        use Verdict::{Again, Full, New};
        let mut taken = Taken::new(Duration::from_secs(300), 3);
        let rows = [
            (1_000, 1, New),
            (1_000, 1, Again),
            (1_599, 1, Again),
            (1_599, 2, New),
            // The next generation.
            (1_600, 1, Again),
            (1_600, 3, New),
            (1_700, 4, Full),
            (2_199, 2, Again),
            // The one after: requests of the first have long expired.
            (2_200, 1, New),
            (2_200, 3, Again),
            (2_200, 2, New),
            // After a long silence nothing is remembered.
            (9_000, 3, New),
            // A clock that is set back forgets nothing.
            (8_000, 3, Again),
        ];
        for (second, number, expected) in rows {
            let verdict = taken.take(Duration::from_secs(second), &[number; 32]);
            assert_eq!(verdict, expected, "{number} at {second}");
        }
    }
}
