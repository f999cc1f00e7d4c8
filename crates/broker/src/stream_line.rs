//! The place of a vhost's changes between the streams' keeper and the store.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use crosstie_queues::Position;

/// What a vhost has submitted to the streams' keeper and to the store.
#[derive(Default)]
pub(super) struct StreamLine {
    /// Submissions that the keeper has and the store has not.
    pub(super) submissions: AtomicUsize,
    /// The last position that the store was handed, and that it has committed.
    submitted: AtomicU64,
    committed: AtomicU64,
    /// The last write failed.
    pub(super) is_failing: AtomicBool,
}

impl StreamLine {
    /// The store has committed everything up to there.
    pub(super) fn note_committed(&self, Position(position): Position) {
        self.committed.fetch_max(position, Ordering::SeqCst);
    }

    pub(super) fn note_submitted(&self, Position(position): Position) {
        self.submitted.store(position, Ordering::SeqCst);
    }

    pub(super) fn submitted(&self) -> Position {
        Position(self.submitted.load(Ordering::SeqCst))
    }

    pub(super) fn is_settled(&self) -> bool {
        self.committed.load(Ordering::SeqCst) >= self.submitted.load(Ordering::SeqCst)
    }
}
