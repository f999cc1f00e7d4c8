//! Bytes through a set of sockets, and bytes sent through sockets of no set.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::cork::thread_number;

/// Bytes received from and sent to the sockets of the connections that carry it.
#[derive(Debug, Default)]
pub struct Meter {
    received_bytes: AtomicU64,
    sent_bytes: AtomicU64,
}

impl Meter {
    pub fn received_bytes(&self) -> u64 {
        self.received_bytes.load(Ordering::Relaxed)
    }

    pub fn sent_bytes(&self) -> u64 {
        self.sent_bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn add_received(&self, count: usize) {
        self.received_bytes
            .fetch_add(count as u64, Ordering::Relaxed);
    }

    pub(crate) fn add_sent(&self, count: usize) {
        self.sent_bytes.fetch_add(count as u64, Ordering::Relaxed);
    }
}

/// Cells for threads, so that they do not contend.
const PLACES: usize = 32;

#[repr(align(128))]
struct Place(AtomicU64);

static SENT: [Place; PLACES] = [const { Place(AtomicU64::new(0)) }; PLACES];

/// Bytes that this process has sent on connections without a [`Meter`], as they were on the wire.
pub fn sent_bytes_unmetered() -> u64 {
    let places = SENT.iter();
    places.map(|place| place.0.load(Ordering::Relaxed)).sum()
}

/// Called once per system call, beside which it costs nothing.
pub(crate) fn add_sent_unmetered(count: usize) {
    let place = &SENT[thread_number() as usize % PLACES];
    place.0.fetch_add(count as u64, Ordering::Relaxed);
}
