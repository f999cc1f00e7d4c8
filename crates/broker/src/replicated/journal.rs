//! The records that a vhost's term submits to the log.

use std::mem;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crosstie_queues::{Position, Record};
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::pages::Wanted;

/// The queue from a vhost to its log. Nothing is refused, as a journal must not have gaps: publishers are blocked
/// instead.
pub struct Journal {
    waiting: Mutex<Vec<Submitted>>,
    /// Bytes not acknowledged by the log, roughly.
    waiting_bytes: AtomicUsize,
    pub(super) wake: Notify,
    /// Pages that the vhost requests.
    wanted: Mutex<Vec<Wanted>>,
    /// The node no longer owns the vhost: further records are dropped.
    is_over: AtomicBool,
}

/// The records of one submission.
pub(super) struct Submitted {
    pub(super) records: Vec<Record>,
    pub(super) position: Position,
    pub bytes: usize,
}

/// Approximate size of a record beside its message's bytes.
const RECORD_BYTES: usize = 160;

impl Journal {
    pub fn new() -> Self {
        Self {
            waiting: Mutex::default(),
            waiting_bytes: AtomicUsize::new(0),
            wake: Notify::new(),
            wanted: Mutex::default(),
            is_over: AtomicBool::new(false),
        }
    }

    /// Takes records up to and including `position`, under the vhost's lock. Returns the bytes that wait.
    pub(crate) fn submit(&self, records: Vec<Record>, position: Position) -> usize {
        if self.is_over.load(Ordering::Relaxed) {
            return 0;
        }
        let bytes = records.iter().map(record_bytes).sum();
        let submitted = Submitted {
            records,
            position,
            bytes,
        };
        self.waiting.lock().push(submitted);
        let before = self.waiting_bytes.fetch_add(bytes, Ordering::Relaxed);
        self.wake.notify_one();
        before + bytes
    }

    pub fn waiting_bytes(&self) -> usize {
        self.waiting_bytes.load(Ordering::Relaxed)
    }

    /// Requests a page.
    pub(crate) fn request(&self, wanted: Wanted) {
        if !self.is_over.load(Ordering::Relaxed) {
            self.wanted.lock().push(wanted);
            self.wake.notify_one();
        }
    }

    pub(super) fn take_wanted(&self) -> Vec<Wanted> {
        mem::take(&mut self.wanted.lock())
    }

    pub(super) fn take(&self) -> Vec<Submitted> {
        mem::take(&mut self.waiting.lock())
    }

    /// Subtracts bytes that no longer wait.
    pub(super) fn settle(&self, bytes: usize) {
        self.waiting_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Accepts no more records; those already accepted will be written.
    pub(super) fn seal(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    /// Whether it accepts no more records.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// Accepts no more records, and drops those that wait.
    pub fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.waiting.lock().clear();
        self.wanted.lock().clear();
        self.waiting_bytes.store(0, Ordering::Relaxed);
    }
}

/// Approximate size of a record in memory.
pub(super) fn record_bytes(record: &Record) -> usize {
    RECORD_BYTES + record.memory_bytes()
}
