//! Bytes through one socket or a set of sockets, and bytes sent through all of them.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::cork::thread_number;

/// Bytes received from and sent to the sockets of the connections that carry it.
#[derive(Debug, Default)]
pub struct Meter {
    received_bytes: AtomicU64,
    sent_bytes: AtomicU64,
    reads: AtomicU64,
    writes: AtomicU64,
    /// Whether [`sent_bytes`] leaves these out.
    is_apart: bool,
}

impl Meter {
    /// For connections that do not count among those of the process.
    pub fn apart() -> Self {
        Self {
            is_apart: true,
            ..Self::default()
        }
    }

    pub fn received_bytes(&self) -> u64 {
        self.received_bytes.load(Ordering::Relaxed)
    }

    pub fn sent_bytes(&self) -> u64 {
        self.sent_bytes.load(Ordering::Relaxed)
    }

    /// Reads that brought bytes.
    pub fn reads(&self) -> u64 {
        self.reads.load(Ordering::Relaxed)
    }

    pub fn writes(&self) -> u64 {
        self.writes.load(Ordering::Relaxed)
    }

    pub(crate) fn add_received(&self, count: usize) {
        self.received_bytes
            .fetch_add(count as u64, Ordering::Relaxed);
        self.reads.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn add_sent(&self, count: usize) {
        self.sent_bytes.fetch_add(count as u64, Ordering::Relaxed);
        self.writes.fetch_add(1, Ordering::Relaxed);
        if !self.is_apart {
            add_sent(count);
        }
    }
}

/// Cells for threads, so that they do not contend.
const PLACES: usize = 32;

#[repr(align(128))]
struct Place(AtomicU64);

static SENT: [Place; PLACES] = [const { Place(AtomicU64::new(0)) }; PLACES];

/// Bytes that this process has sent, as they were on the wire, without those of a meter apart.
pub fn sent_bytes() -> u64 {
    let places = SENT.iter();
    places.map(|place| place.0.load(Ordering::Relaxed)).sum()
}

/// Called once per system call, beside which it costs nothing.
pub(crate) fn add_sent(count: usize) {
    let place = &SENT[thread_number() as usize % PLACES];
    place.0.fetch_add(count as u64, Ordering::Relaxed);
}
