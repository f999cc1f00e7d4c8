//! The spans of a process that wait for its exporter.

use std::mem;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::span::{Span, now};

/// The exporter is woken at so many.
pub const FULL_BATCH: usize = 512;

/// Further ones are dropped and counted: some 4 MB of them.
const SPANS_MAX: usize = 8_192;

/// Spans by their end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// The collector has taken them.
    pub exported: u64,
    /// The collector has not.
    pub failed: u64,
    /// There was no room for them.
    pub dropped: u64,
}

static IS_ON: AtomicBool = AtomicBool::new(false);
static SPANS: Mutex<Vec<Span>> = Mutex::new(Vec::new());
static IS_FULL: Notify = Notify::const_new();
static EXPORTED: AtomicU64 = AtomicU64::new(0);
static FAILED: AtomicU64 = AtomicU64::new(0);
static DROPPED: AtomicU64 = AtomicU64::new(0);

/// Whether an exporter runs.
#[inline]
pub fn is_on() -> bool {
    IS_ON.load(Ordering::Relaxed)
}

/// Says whether an exporter runs.
pub fn switch(is_on: bool) {
    IS_ON.store(is_on, Ordering::Relaxed);
}

impl Span {
    /// Ends the span, and leaves it to the exporter.
    pub fn record(mut self) {
        self.ended = now().max(self.begun);
        push(self);
    }
}

fn push(span: Span) {
    let mut spans = SPANS.lock();
    if spans.len() >= SPANS_MAX {
        note_dropped();
        return;
    }
    spans.push(span);
    if spans.len() == FULL_BATCH {
        IS_FULL.notify_one();
    }
}

pub(crate) fn note_dropped() {
    DROPPED.fetch_add(1, Ordering::Relaxed);
}

/// Takes all that wait.
pub fn take() -> Vec<Span> {
    mem::take(&mut *SPANS.lock())
}

/// Returns when a batch is full.
pub async fn wait_for_batch() {
    IS_FULL.notified().await;
}

/// Counts spans that have left.
pub fn note_exported(spans: usize, is_taken: bool) {
    let count = if is_taken { &EXPORTED } else { &FAILED };
    count.fetch_add(spans as u64, Ordering::Relaxed);
}

/// The spans since the process started.
pub fn counts() -> Counts {
    Counts {
        exported: EXPORTED.load(Ordering::Relaxed),
        failed: FAILED.load(Ordering::Relaxed),
        dropped: DROPPED.load(Ordering::Relaxed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Context;

    /// One test, as the queue is the process's.
    #[test]
    fn a_full_queue_drops_and_counts() {
        let context = Context {
            trace: 1,
            parent: 2,
        };
        for _ in 0..SPANS_MAX + 3 {
            Span::begin(context, "call", "p").record();
        }
        assert_eq!(take().len(), SPANS_MAX);
        assert_eq!(counts().dropped, 3);
        assert!(take().is_empty());
        note_exported(2, true);
        note_exported(1, false);
        let expected = Counts {
            exported: 2,
            failed: 1,
            dropped: 3,
        };
        assert_eq!(counts(), expected);
    }
}
