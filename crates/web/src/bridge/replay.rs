//! Signed requests that were taken, so that none is taken twice.

use std::collections::HashSet;
use std::time::Duration;

/// What was taken, for as long as it would be taken again.
///
/// A request is good from `delta` before its time until `delta` after it, so what was taken is remembered
/// for twice that at least: in the present generation or the one before, each of which lasts as long.
#[derive(Debug)]
pub struct Taken {
    delta: Duration,
    entries_max: usize,
    /// When the present generation began, since 1970.
    began: Duration,
    present: HashSet<[u8; 16]>,
    before: HashSet<[u8; 16]>,
}

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    New,
    Again,
    /// There is no room to remember it: it is not to be taken.
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

    /// Takes a request with that signature at `now`, which is since 1970.
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
        // Half of it is as much as nobody can find another one for.
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
    fn what_was_taken_is_not_taken_while_it_would_be() {
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
            // The one after: what was of the first has long expired.
            (2_200, 1, New),
            (2_200, 3, Again),
            (2_200, 2, New),
            // After a long silence nothing is left.
            (9_000, 3, New),
            // A clock that was set back forgets nothing.
            (8_000, 3, Again),
        ];
        for (second, number, expected) in rows {
            let verdict = taken.take(Duration::from_secs(second), &[number; 32]);
            assert_eq!(verdict, expected, "{number} at {second}");
        }
    }
}
