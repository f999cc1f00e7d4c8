//! Spans of calls that have no answer yet.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::queue;
use crate::span::Span;

/// The open spans of one realm, by caller and request.
#[derive(Debug, Default)]
pub struct OpenSpans {
    spans: Mutex<HashMap<(usize, u64), Span>>,
    /// Their number.
    count: AtomicUsize,
}

/// Further ones are dropped and counted.
const OPEN_MAX: usize = 8_192;

impl OpenSpans {
    /// Whether there are any.
    #[inline]
    pub fn has_some(&self) -> bool {
        self.count.load(Ordering::Relaxed) > 0
    }

    /// Keeps the span of a call until its end. A request that is already open keeps its span.
    pub fn open(&self, caller: usize, request: u64, span: Span) {
        let mut spans = self.spans.lock();
        if spans.len() >= OPEN_MAX {
            queue::note_dropped();
            return;
        }
        spans.entry((caller, request)).or_insert(span);
        self.count.store(spans.len(), Ordering::Relaxed);
    }

    /// Ends the span of a call, if it has one.
    #[cold]
    pub fn end(&self, caller: usize, request: u64, failure: Option<&str>) {
        let mut spans = self.spans.lock();
        let Some(span) = spans.remove(&(caller, request)) else {
            return;
        };
        self.count.store(spans.len(), Ordering::Relaxed);
        drop(spans);
        record(span, failure);
    }

    /// Ends the spans of all calls of a caller that has left.
    pub fn end_all(&self, caller: usize, failure: &str) {
        if !self.has_some() {
            return;
        }
        let mut spans = self.spans.lock();
        let ended = spans.extract_if(|(of, _), _| *of == caller);
        let ended: Vec<Span> = ended.map(|(_, span)| span).collect();
        self.count.store(spans.len(), Ordering::Relaxed);
        drop(spans);
        for span in ended {
            record(span, Some(failure));
        }
    }
}

fn record(span: Span, failure: Option<&str>) {
    match failure {
        Some(why) => span.failed(why).record(),
        None => span.record(),
    }
}
