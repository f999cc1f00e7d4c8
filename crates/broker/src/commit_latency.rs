//! The time from a record to its commit, measured for one record at a time.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crosstie_queues::Position;
use parking_lot::Mutex;

/// A measurement, and the result of the last one.
#[derive(Debug, Default)]
pub(super) struct CommitLatency {
    is_measuring: AtomicBool,
    begun: Mutex<Option<(Position, Instant)>>,
    last_ns: AtomicU64,
}

impl CommitLatency {
    /// Records up to there are submitted. Measures, unless it measures already.
    #[inline]
    pub(super) fn begin(&self, position: Position) {
        if !self.is_measuring.load(Ordering::Relaxed) {
            *self.begun.lock() = Some((position, Instant::now()));
            self.is_measuring.store(true, Ordering::Relaxed);
        }
    }

    /// Records up to there are committed, or will not be.
    pub(super) fn end(&self, position: Position) {
        if !self.is_measuring.load(Ordering::Relaxed) {
            return;
        }
        let mut begun = self.begun.lock();
        if let Some((_, at)) = begun.take_if(|(awaited, _)| *awaited <= position) {
            self.last_ns
                .store(at.elapsed().as_nanos() as u64, Ordering::Relaxed);
            self.is_measuring.store(false, Ordering::Relaxed);
        }
    }

    /// The last result; zero before the first.
    pub(super) fn last(&self) -> Duration {
        Duration::from_nanos(self.last_ns.load(Ordering::Relaxed))
    }
}
