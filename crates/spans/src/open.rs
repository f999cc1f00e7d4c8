//! Spans of calls that have no answer yet.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::queue;
use crate::span::{Failure, Span};

/// The open spans of one realm, by caller and request.
#[derive(Debug, Default)]
pub struct OpenSpans {
    callers: Mutex<HashMap<usize, HashMap<u64, Span>>>,
    /// Number of spans.
    count: AtomicUsize,
}

/// Maximum number of a realm. Further ones are dropped and counted.
const OPEN_MAX: usize = 8_192;

/// Maximum number of one caller, so that it leaves room for others.
const CALLER_MAX: usize = OPEN_MAX / 8;

impl OpenSpans {
    /// Whether there are any.
    #[inline]
    pub fn has_some(&self) -> bool {
        self.count.load(Ordering::Relaxed) > 0
    }

    /// Keeps the span of a call until its end. A request that is already open keeps its span.
    pub fn open(&self, caller: usize, request: u64, span: Span) {
        let mut callers = self.callers.lock();
        let own = callers.get(&caller);
        if own.is_some_and(|own| own.contains_key(&request)) {
            return;
        }
        let is_spent = own.is_some_and(|own| own.len() >= CALLER_MAX);
        if is_spent || self.count.load(Ordering::Relaxed) >= OPEN_MAX {
            queue::note_dropped();
            return;
        }
        callers.entry(caller).or_default().insert(request, span);
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    /// Ends the span of a call, if it has one.
    pub fn end(&self, caller: usize, request: u64, failure: Option<Failure<'_>>) {
        if let Some(span) = self.remove(caller, request) {
            record(span, failure);
        }
    }

    /// Forgets the span of what turned out to be no call, if it has one.
    pub fn forget(&self, caller: usize, request: u64) {
        self.remove(caller, request);
    }

    fn remove(&self, caller: usize, request: u64) -> Option<Span> {
        let mut callers = self.callers.lock();
        let own = callers.get_mut(&caller)?;
        let span = own.remove(&request)?;
        if own.is_empty() {
            callers.remove(&caller);
        }
        self.count.fetch_sub(1, Ordering::Relaxed);
        Some(span)
    }

    /// Ends the spans of all calls of a caller that has left.
    pub fn end_all(&self, caller: usize, failure: Failure<'_>) {
        if !self.has_some() {
            return;
        }
        let spans = self.callers.lock().remove(&caller).unwrap_or_default();
        self.count.fetch_sub(spans.len(), Ordering::Relaxed);
        for span in spans.into_values() {
            record(span, Some(failure));
        }
    }

    /// A caller goes on as another one, which has made no calls yet.
    pub fn rename(&self, before: usize, now: usize) {
        if !self.has_some() {
            return;
        }
        let mut callers = self.callers.lock();
        if let Some(spans) = callers.remove(&before) {
            callers.insert(now, spans);
        }
    }
}

fn record(span: Span, failure: Option<Failure<'_>>) {
    match failure {
        Some(failure) => span.failed(failure).record(),
        None => span.record(),
    }
}
