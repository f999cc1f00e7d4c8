//! The time from a record to its commit, or from a publication to its confirm, measured for one at a time.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crosstie_collections::{Histogram, SharedHistogram};
use crosstie_queues::Position;
use parking_lot::Mutex;

/// A measurement, and the results so far.
#[derive(Debug, Default)]
pub(super) struct CommitLatency {
    is_measuring: AtomicBool,
    begun: Mutex<Option<(Position, Instant)>>,
    last_ns: AtomicU64,
    /// In microseconds.
    results: SharedHistogram,
}

impl CommitLatency {
    /// Records up to there are submitted. Measures, unless it measures already; `at` tells since when.
    #[inline]
    pub(super) fn begin(&self, position: Position, at: impl FnOnce() -> Instant) {
        if !self.is_measuring.load(Ordering::Relaxed) {
            *self.begun.lock() = Some((position, at()));
            self.is_measuring.store(true, Ordering::Relaxed);
        }
    }

    /// Whether the next [`Self::begin`] measures.
    #[inline]
    pub(super) fn is_idle(&self) -> bool {
        !self.is_measuring.load(Ordering::Relaxed)
    }

    /// Records up to there are committed, or will not be.
    pub(super) fn end(&self, position: Position) {
        if let Some(at) = self.take(position) {
            let took = at.elapsed();
            self.last_ns
                .store(took.as_nanos() as u64, Ordering::Relaxed);
            self.results.note(took.as_micros() as u64);
        }
    }

    /// Forgets the measurement of records up to there.
    pub(super) fn give_up(&self, position: Position) {
        self.take(position);
    }

    fn take(&self, position: Position) -> Option<Instant> {
        if self.is_idle() {
            return None;
        }
        let mut begun = self.begun.lock();
        let (_, at) = begun.take_if(|(awaited, _)| *awaited <= position)?;
        self.is_measuring.store(false, Ordering::Relaxed);
        Some(at)
    }

    /// The last result; zero before the first.
    pub(super) fn last(&self) -> Duration {
        Duration::from_nanos(self.last_ns.load(Ordering::Relaxed))
    }

    /// All results, in microseconds.
    pub(super) fn results(&self) -> Histogram {
        self.results.read()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_measured_at_a_time() {
        let latency = CommitLatency::default();
        latency.begin(Position(5), Instant::now);
        latency.begin(Position(6), || panic!("measures already"));
        latency.end(Position(4));
        assert_eq!(latency.results().count(), 0);
        latency.end(Position(6));
        latency.end(Position(7));
        assert_eq!(latency.results().count(), 1);
        latency.begin(Position(8), Instant::now);
        latency.give_up(Position(8));
        assert!(latency.is_idle());
        assert_eq!(latency.results().count(), 1);
    }
}
