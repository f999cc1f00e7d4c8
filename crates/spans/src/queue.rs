//! The spans of a process that wait for its exporter.

use std::mem;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::context::Context;
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

/// A right to take the spans of the process. While there is one, spans are recorded.
#[derive(Debug)]
pub struct Taker(());

static TAKERS: AtomicUsize = AtomicUsize::new(0);
static SPANS: Mutex<Vec<Span>> = Mutex::new(Vec::new());
/// The number of spans that wait.
static WAITING: AtomicUsize = AtomicUsize::new(0);
static IS_FULL: Notify = Notify::const_new();
static EXPORTED: AtomicU64 = AtomicU64::new(0);
static FAILED: AtomicU64 = AtomicU64::new(0);
static DROPPED: AtomicU64 = AtomicU64::new(0);

/// Whether an exporter runs.
#[inline]
pub fn is_on() -> bool {
    TAKERS.load(Ordering::Relaxed) > 0
}

impl Span {
    /// Begins a span now, if there is room for it: `verb` says what is done with the message, to the `subject`.
    pub fn begin(context: Context, verb: &str, subject: &str) -> Option<Self> {
        if WAITING.load(Ordering::Relaxed) >= SPANS_MAX {
            note_dropped();
            return None;
        }
        Some(Self::new(context, verb, subject))
    }

    /// Ends the span, and leaves it to the exporter. One that ends after the last exporter is forgotten.
    pub fn record(mut self) {
        self.ended = now().max(self.begun);
        if is_on() {
            push(self);
        }
    }
}

fn push(span: Span) {
    let mut spans = SPANS.lock();
    if spans.len() >= SPANS_MAX {
        note_dropped();
        return;
    }
    spans.push(span);
    WAITING.store(spans.len(), Ordering::Relaxed);
    if spans.len() == FULL_BATCH {
        IS_FULL.notify_one();
    }
}

pub(crate) fn note_dropped() {
    DROPPED.fetch_add(1, Ordering::Relaxed);
}

impl Taker {
    #[expect(clippy::new_without_default, reason = "it changes the process")]
    pub fn new() -> Self {
        TAKERS.fetch_add(1, Ordering::Relaxed);
        Self(())
    }

    /// Takes a batch of those that wait, the earliest.
    pub fn take(&self) -> Vec<Span> {
        let mut spans = SPANS.lock();
        let many = FULL_BATCH.min(spans.len());
        let rest = spans.split_off(many);
        let batch = mem::replace(&mut *spans, rest);
        WAITING.store(spans.len(), Ordering::Relaxed);
        batch
    }

    /// Returns when a batch is full.
    pub async fn wait_for_batch(&self) {
        IS_FULL.notified().await;
    }
}

impl Drop for Taker {
    fn drop(&mut self) {
        if TAKERS.fetch_sub(1, Ordering::Relaxed) == 1 {
            // Another one begins without them.
            let left = mem::take(&mut *SPANS.lock());
            WAITING.store(0, Ordering::Relaxed);
            note_exported(left.len(), false);
        }
    }
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

    fn span() -> Option<Span> {
        let context = Context {
            trace: 1,
            parent: 2,
        };
        Span::begin(context, "call", "p")
    }

    /// One test, as the queue is the process's.
    #[test]
    fn a_full_queue_drops_and_counts() {
        span().expect("room").record();
        let taker = Taker::new();
        assert!(taker.take().is_empty());
        for _ in 0..SPANS_MAX {
            span().expect("room").record();
        }
        assert!(span().is_none());
        assert_eq!(counts().dropped, 1);
        for _ in 0..SPANS_MAX / FULL_BATCH - 1 {
            assert_eq!(taker.take().len(), FULL_BATCH);
        }
        note_exported(2, true);
        drop(taker);
        assert!(!is_on());
        let expected = Counts {
            exported: 2,
            failed: FULL_BATCH as u64,
            dropped: 1,
        };
        assert_eq!(counts(), expected);
        assert!(Taker::new().take().is_empty());
    }
}
