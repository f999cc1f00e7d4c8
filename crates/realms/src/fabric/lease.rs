//! A node's lease, and the age of another node's.
//!
//! A lease is a key that its node renews every second. Its value states for how long the node serves its grants after
//! each renewal. Another node ends the lease when that time has certainly passed, without looking at any other clock.
//! There are two proofs of a renewal's age. Sequences of one stream are ordered, so a lease with a lower sequence than
//! one of this node's own renewals is at least as old as that renewal. And nodes hear each other's renewals, which are
//! messages, also while servers elect a leader: a renewal that was heard is at least as old as that.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

/// Interval of renewals.
pub(super) const RENEWED_EACH: Duration = Duration::from_secs(1);

/// Time for which a node serves its grants after a renewal. A renewal that is late by a few seconds, as during an election
/// of a leader, interrupts calls; it loses no grant.
pub(super) const SERVES: Duration = Duration::from_secs(4);

/// Time after which a node without renewals tells its callees that it has lost the grants.
pub(super) const KEPT: Duration = Duration::from_secs(15);

/// Lifetime of the key, for leases that no node ends. Also that of an ended one, which no earlier release may take for
/// a lease.
pub(super) const LIVES: Duration = Duration::from_secs(20);

/// Time for which this node's own renewals must have succeeded before it ends another lease. Every live node has renewed
/// its lease by then, if a leader was elected shortly before.
const STEADY: Duration = Duration::from_secs(2);

/// Number of own renewals that are remembered.
const REMEMBERED: usize = 32;

/// Number of other leases of which the last renewal that was heard is remembered.
const HEARD: usize = 1_024;

/// The lease of this node.
pub(super) struct Lease {
    pub(super) name: String,
    pub(super) key: String,
    /// The sequence of its last renewal; 0 before the first.
    pub(super) sequence: u64,
    /// Number of the last renewal, and the times of recent ones.
    number: u64,
    asked: VecDeque<(u64, Instant)>,
    /// Number of the last successful renewal.
    known: u64,
}

impl Lease {
    pub(super) fn new(name: String, key: String) -> Self {
        Self {
            name,
            key,
            sequence: 0,
            number: 0,
            asked: VecDeque::new(),
            known: 0,
        }
    }

    /// Begins a renewal. Returns the value to write.
    pub(super) fn renewal(&mut self, now: Instant) -> String {
        self.number += 1;
        self.asked.push_back((self.number, now));
        if self.asked.len() > REMEMBERED {
            self.asked.pop_front();
        }
        format!("{} {} {}", self.name, SERVES.as_millis(), self.number)
    }

    /// The renewal that wrote this value; `None` if it was not one of this lease.
    pub(super) fn written(&self, value: &[u8]) -> Option<Written> {
        let Stated { name, number, .. } = Stated::read(value)?;
        if name != self.name {
            return None;
        }
        let asked = self.asked.iter().find(|(known, _)| *known == number);
        asked.map(|(_, asked)| Written {
            asked: *asked,
            is_news: number > self.known,
        })
    }

    /// Notes a successful renewal.
    pub(super) fn note(&mut self, sequence: u64, asked: Instant) {
        self.sequence = sequence;
        let found = self.asked.iter().find(|(_, at)| *at == asked);
        self.known = found.map_or(self.known, |(number, _)| *number);
    }
}

/// A renewal whose answer was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Written {
    pub(super) asked: Instant,
    /// It was not known to have succeeded. A leader without a majority still shows an earlier one.
    pub(super) is_news: bool,
}

/// Whether a lease's value is that of an ended one.
pub(super) fn is_ended(value: &[u8]) -> bool {
    value.is_empty()
}

/// A lease's value. `None` if it is of a release that states a name alone.
struct Stated<'a> {
    name: &'a str,
    /// How long the node serves its grants after the renewal.
    serves: Duration,
    number: u64,
}

impl<'a> Stated<'a> {
    fn read(value: &'a [u8]) -> Option<Self> {
        let mut parts = str::from_utf8(value).ok()?.split(' ');
        Some(Self {
            name: parts.next()?,
            serves: Duration::from_millis(parts.next()?.parse().ok()?),
            number: parts.next()?.parse().ok()?,
        })
    }
}

/// This node's renewals, and those of others as they were heard.
#[derive(Default)]
pub(super) struct Renewals {
    /// Their sequences, and when each was known to be written.
    known: VecDeque<(u64, Instant)>,
    /// The first since the last interruption.
    steady_since: Option<Instant>,
    /// The last renewal of each other lease, and when it was heard.
    heard: BTreeMap<String, (u64, Instant)>,
}

impl Renewals {
    /// Notes another node's request to renew, whether or not it succeeds.
    pub(super) fn hear(&mut self, value: &[u8], now: Instant) {
        let Some(stated) = Stated::read(value) else {
            return;
        };
        if self.heard.len() >= HEARD {
            self.heard
                .retain(|_, (_, at)| now.duration_since(*at) < LIVES);
        }
        if self.heard.len() < HEARD {
            let last = (stated.number, now);
            self.heard.insert(stated.name.to_owned(), last);
        }
    }

    pub(super) fn note(&mut self, sequence: u64, now: Instant) {
        if !self.is_recent(now) {
            self.steady_since = Some(now);
        }
        self.known.push_back((sequence, now));
        if self.known.len() > REMEMBERED {
            self.known.pop_front();
        }
    }

    /// Sequences of another stream are no evidence.
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }

    /// Whether another node's lease is certainly over, if this node's own is in the same stream. Clocks whose rates differ
    /// by less than a quarter are assumed.
    pub(super) fn prove_over(&self, sequence: u64, value: &[u8], now: Instant) -> bool {
        let Some(stated) = Stated::read(value) else {
            return false;
        };
        let has_passed =
            |at: Instant| now.duration_since(at) >= stated.serves.saturating_mul(5) / 4;
        // A live node is heard while it tries to renew.
        let heard = self.heard.get(stated.name);
        let is_silent =
            heard.is_some_and(|(number, at)| *number >= stated.number && has_passed(*at));
        let is_steady = self
            .steady_since
            .is_some_and(|since| now.duration_since(since) >= STEADY);
        let later = self.known.iter().find(|(own, _)| *own > sequence);
        let is_older = later.is_some_and(|(_, at)| has_passed(*at));
        self.is_recent(now) && (is_silent || is_steady && is_older)
    }

    fn is_recent(&self, now: Instant) -> bool {
        let last = self.known.back();
        last.is_some_and(|(_, at)| now.duration_since(*at) <= STEADY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// Renewals with sequences 10, 20, … at these seconds.
    fn renewed(start: Instant, seconds: &[u32]) -> Renewals {
        let mut renewals = Renewals::default();
        for (number, second) in (1..).zip(seconds) {
            renewals.note(number * 10, start + SECOND * *second);
        }
        renewals
    }

    #[test]
    fn a_lease_is_over_by_this_nodes_own_renewals() {
        let start = Instant::now();
        let steady: Vec<u32> = (0..8).collect();
        for (seconds, sequence, value, at_ms, is_over) in [
            // The renewal with sequence 20 came a second later than 10.
            (&steady[..], 15, "other 4000 7", 5_900, false),
            (&steady[..], 15, "other 4000 7", 7_000, true),
            (&steady[..7], 15, "other 4000 7", 6_000, true),
            (&steady[..], 15, "other 6000 7", 7_000, false),
            // It was renewed after all of this node's renewals.
            (&steady[..], 85, "other 4000 7", 7_000, false),
            // Of an earlier release.
            (&steady[..], 15, "other", 7_000, false),
            (&steady[..], 15, "other 4000", 7_000, false),
            (&steady[..], 15, "", 7_000, false),
            // This node's own renewals have stopped, or have just begun again.
            (&steady[..], 15, "other 4000 7", 10_000, false),
            (&[0, 1, 2, 9], 15, "other 4000 7", 9_000, false),
            (&[0, 1, 2, 9, 10, 11], 15, "other 4000 7", 11_000, true),
        ] {
            let now = start + Duration::from_millis(at_ms);
            let known = renewed(start, seconds);
            let proven = known.prove_over(sequence, value.as_bytes(), now);
            assert_eq!(proven, is_over, "{seconds:?} {sequence} {value} {at_ms}");
        }
    }

    #[test]
    fn a_renewal_is_known_by_its_value() {
        let start = Instant::now();
        let mut lease = Lease::new("a-1".to_owned(), "key".to_owned());
        let values: Vec<_> = (0..40).map(|n| lease.renewal(start + SECOND * n)).collect();
        assert_eq!(values[0], "a-1 4000 1");
        let last = start + SECOND * 39;
        let written = |is_news| Written {
            asked: last,
            is_news,
        };
        assert_eq!(lease.written(values[39].as_bytes()), Some(written(true)));
        lease.note(7, last);
        assert_eq!(lease.written(values[39].as_bytes()), Some(written(false)));
        assert_eq!(lease.written(values[0].as_bytes()), None);
        for foreign in ["a-2 4000 40", "a-1", "", "a-1 4000 x", "a-1 4000 41"] {
            assert_eq!(lease.written(foreign.as_bytes()), None, "{foreign}");
        }
        let stated = Stated::read(values[3].as_bytes());
        assert_eq!(stated.map(|stated| stated.serves), Some(SERVES));
    }

    #[test]
    fn a_lease_is_over_when_its_node_is_silent() {
        let start = Instant::now();
        let at = |ms: u64| start + Duration::from_millis(ms);
        // Servers have elected a leader from second 1 to 7: this node's renewals are not older than the other one's.
        for (heard, value, at_ms, is_over) in [
            (&[(0, "other 4000 7")][..], "other 4000 7", 7_100, true),
            // The election has not ended yet.
            (&[(0, "other 4000 7")], "other 4000 7", 6_900, false),
            (&[(2_200, "other 4000 7")], "other 4000 7", 7_100, false),
            // It has tried to renew since, with or without success.
            (
                &[(0, "other 4000 7"), (1_000, "other 4000 8")],
                "other 4000 7",
                7_100,
                true,
            ),
            (
                &[(0, "other 4000 7"), (6_000, "other 4000 8")],
                "other 4000 7",
                7_100,
                false,
            ),
            (
                &[(0, "other 4000 7"), (6_000, "other 4000 8")],
                "other 4000 8",
                7_100,
                false,
            ),
            // A renewal that was not heard, the lease of another node, and one of an earlier release.
            (&[(0, "other 4000 7")], "other 4000 8", 7_100, false),
            (&[(0, "third 4000 7")], "other 4000 7", 7_100, false),
            (&[(0, "other")], "other", 7_100, false),
        ] {
            let mut renewals = Renewals::default();
            renewals.note(10, at(0));
            for (ms, said) in heard {
                renewals.hear(said.as_bytes(), at(*ms));
            }
            if at_ms > 7_000 {
                renewals.note(30, at(7_000));
            }
            let proven = renewals.prove_over(20, value.as_bytes(), at(at_ms));
            assert_eq!(proven, is_over, "{heard:?} {value} {at_ms}");
        }
    }

    #[test]
    fn leases_that_are_heard_are_bounded() {
        let start = Instant::now();
        let mut renewals = Renewals::default();
        for number in 0..2 * HEARD {
            renewals.hear(format!("{number} 4000 1").as_bytes(), start);
        }
        assert_eq!(renewals.heard.len(), HEARD);
        renewals.hear(b"new 4000 1", start + LIVES);
        assert_eq!(renewals.heard.len(), 1);
    }
}
