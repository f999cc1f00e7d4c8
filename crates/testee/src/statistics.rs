//! A testee's counters.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crosstie_transport::Meter;

/// Counters of one testee, shared by its connections.
#[derive(Debug)]
pub struct Statistics {
    handshakes: AtomicU64,
    messages: AtomicU64,
    bytes: AtomicU64,
    connected: AtomicU64,
    pub(crate) wire: Arc<Meter>,
}

impl Default for Statistics {
    fn default() -> Self {
        Self {
            handshakes: AtomicU64::new(0),
            messages: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            connected: AtomicU64::new(0),
            wire: Arc::new(Meter::apart()),
        }
    }
}

impl Statistics {
    /// Counts an opened connection: after its opening handshake, if it has one.
    pub(crate) fn count_in(&self) {
        self.handshakes.fetch_add(1, Ordering::Relaxed);
        self.connected.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count_out(&self) {
        self.connected.fetch_sub(1, Ordering::Relaxed);
    }

    pub(crate) fn add_echoed(&self, messages: u64, bytes: u64) {
        self.messages.fetch_add(messages, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Connections that are open now.
    pub fn connected(&self) -> u64 {
        self.connected.load(Ordering::Relaxed)
    }

    /// All counts so far.
    pub fn totals(&self) -> Totals {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Totals {
            handshakes: read(&self.handshakes),
            messages: read(&self.messages),
            bytes: read(&self.bytes),
            wire_in: self.wire.received_bytes(),
            wire_out: self.wire.sent_bytes(),
        }
    }
}

/// Counts up to some moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    pub handshakes: u64,
    pub messages: u64,
    /// Bytes of the messages themselves.
    pub bytes: u64,
    /// Bytes read from the sockets.
    pub wire_in: u64,
    /// Bytes written to the sockets.
    pub wire_out: u64,
}
