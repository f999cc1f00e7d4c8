//! The places of a delayed message: which bucket of a wheel of wheels it waits in, and when it moves on.
//!
//! ```text
//! level 3: 3 days each ─▶ level 2: 70 min ─▶ level 1: 66 s ─▶ level 0: 1 s ─▶ near (in memory, sorted)
//! ```
//!
//! A bucket is opened a while before its time begins: its messages move to finer buckets. From then on messages for its
//! time go there at once. *Never:* a queue, a message.

use crate::Time;

/// The finest buckets have a width of about a second.
const FINEST_BITS: u32 = 10;
/// Each level is that many bits coarser than the next.
const LEVEL_BITS: u32 = 6;
const LEVELS: u8 = 4;

/// A finest bucket is read that long before its time.
const NEAR_MS: u64 = 2 << FINEST_BITS;

/// A bucket of a wheel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) level: u8,
    /// The begin of its time.
    pub(super) start_ms: u64,
}

impl Place {
    /// The bucket for a message that is due then.
    pub(super) fn of(due: Time, now: Time) -> Self {
        let mut place = Self::at(0, due);
        for level in 1..LEVELS {
            let coarser = Self::at(level, due);
            if coarser.is_open(now) {
                break;
            }
            place = coarser;
        }
        place
    }

    /// The bucket of that level.
    pub(super) fn at(level: u8, due: Time) -> Self {
        let bits = Self::bits(level);
        Self {
            level,
            start_ms: due.0 >> bits << bits,
        }
    }

    /// That of a restored bucket, if there is such a level.
    pub(super) fn restored(level: u8, start_ms: u64) -> Option<Self> {
        (level < LEVELS).then_some(Self { level, start_ms })
    }

    /// When its messages move to finer buckets.
    pub(super) fn opens_at(self) -> Time {
        let lead_ms = match self.level {
            0 => NEAR_MS,
            level => (1 << Self::bits(level)) / 4,
        };
        Time(self.start_ms.saturating_sub(lead_ms))
    }

    pub(super) fn is_open(self, now: Time) -> bool {
        self.opens_at() <= now
    }

    pub(super) fn is_finest(self) -> bool {
        self.level == 0
    }

    fn bits(level: u8) -> u32 {
        FINEST_BITS + LEVEL_BITS * u32::from(level)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_reaches_the_finest_bucket_before_it_is_due() {
        for now in [0, 1, 1_764_000_000_000, 1_764_000_001_023] {
            for delay_ms in (0..32).flat_map(|bit| [(1_u64 << bit) - 1, 1 << bit, (3 << bit) / 2]) {
                let due = Time(now + delay_ms);
                let mut at = Time(now);
                let mut moves = 0;
                let mut place = Place::of(due, at);
                while !place.is_finest() {
                    assert!(place.start_ms <= due.0 && !place.is_open(at), "{place:?}");
                    at = place.opens_at();
                    let next = Place::of(due, at);
                    assert!(next.level < place.level, "{place:?} {next:?}");
                    place = next;
                    moves += 1;
                }
                assert!(place.opens_at() <= due && moves < LEVELS, "{place:?}");
            }
        }
    }

    #[test]
    fn few_buckets_are_in_use_at_a_time() {
        let now = Time(1_764_000_000_000);
        let dues = (0..u64::from(u32::MAX)).step_by(997);
        let mut places: Vec<Place> = dues.map(|ms| Place::of(Time(now.0 + ms), now)).collect();
        places.dedup();
        places.sort_unstable();
        places.dedup();
        assert!(places.len() < 270, "{}", places.len());
    }
}
