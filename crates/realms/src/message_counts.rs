//! Counts messages by type: for each realm, and for handshakes outside realms.
//!
//! A realm counts under its lock, without concurrent writers. Each thread nevertheless has its own counters, so that
//! counting moves no cache lines between cores beyond those of the lock.

use std::sync::atomic::{AtomicU64, Ordering};

use crosstie_collections::{Histogram, SharedHistogram};
use crosstie_transport::thread_number;
use crosstie_wamp::MessageType;

/// The direction of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    Received,
    Sent,
}

/// Message types have codes below this.
const CODES: usize = 71;

/// Number of sets of counters; a thread uses the one at its number modulo this.
const PLACES: usize = 8;

/// The messages that a realm has received and sent.
#[derive(Debug)]
pub struct RealmMessages {
    places: Box<[Messages; PLACES]>,
}

/// Messages by type.
#[derive(Debug)]
#[repr(align(128))]
pub struct Messages {
    received: [AtomicU64; CODES],
    sent: [AtomicU64; CODES],
    /// Bytes of the received messages.
    sizes: SharedHistogram,
}

impl RealmMessages {
    pub(crate) fn new() -> Self {
        Self {
            places: Box::new([const { Messages::new() }; PLACES]),
        }
    }

    /// This thread's counters; only under the realm's lock.
    pub fn own(&self) -> &Messages {
        &self.places[thread_number() as usize % PLACES]
    }

    pub fn total(&self, direction: Direction, kind: MessageType) -> u64 {
        let places = self.places.iter();
        places.map(|place| place.total(direction, kind)).sum()
    }

    /// The bytes of the received messages.
    pub fn sizes(&self) -> Histogram {
        let mut sizes = Histogram::default();
        for place in &*self.places {
            sizes.add(&place.sizes.read());
        }
        sizes
    }
}

impl Messages {
    pub(crate) const fn new() -> Self {
        Self {
            received: [const { AtomicU64::new(0) }; CODES],
            sent: [const { AtomicU64::new(0) }; CODES],
            sizes: SharedHistogram::new(),
        }
    }

    /// Counts a received message of that many bytes, without concurrent writers.
    #[inline]
    pub(crate) fn count_received_alone(&self, kind: MessageType, bytes: usize) {
        self.count_alone(Direction::Received, kind);
        self.sizes.note_alone(bytes as u64, 1);
    }

    /// Counts without concurrent writers: a load and a store, without a bus lock.
    pub(crate) fn count_alone(&self, direction: Direction, kind: MessageType) {
        let count = &self.of(direction)[kind as usize];
        count.store(count.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    /// Counts with concurrent writers.
    pub fn count(&self, direction: Direction, kind: MessageType) {
        self.of(direction)[kind as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub fn total(&self, direction: Direction, kind: MessageType) -> u64 {
        self.of(direction)[kind as usize].load(Ordering::Relaxed)
    }

    fn of(&self, direction: Direction) -> &[AtomicU64; CODES] {
        match direction {
            Direction::Received => &self.received,
            Direction::Sent => &self.sent,
        }
    }
}

/// Whether messages of this type open and close sessions: these are counted for the router worker, all others for their
/// realm.
pub fn is_of_sessions(kind: MessageType) -> bool {
    use MessageType::{Abort, Authenticate, Challenge, Goodbye, Hello, Welcome};
    matches!(
        kind,
        Hello | Welcome | Abort | Challenge | Authenticate | Goodbye
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_has_a_place() {
        let (realm, worker) = (RealmMessages::new(), Messages::new());
        for kind in MessageType::ALL {
            realm.own().count_alone(Direction::Sent, kind);
            worker.count(Direction::Received, kind);
        }
        for kind in MessageType::ALL {
            assert_eq!(realm.total(Direction::Sent, kind), 1);
            assert_eq!(realm.total(Direction::Received, kind), 0);
            assert_eq!(worker.total(Direction::Received, kind), 1);
        }
    }
}
