//! Messages, counted by type: for each realm, and for what happens before there is one.
//!
//! A realm counts under its lock, where nobody else writes; each thread has a place of its own all the
//! same, so that counting moves nothing between the cores' caches that the lock does not move.

use std::sync::atomic::{AtomicU64, Ordering};

use crosstie_transport::thread_number;
use crosstie_wamp::MessageType;

/// Which way a message went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Received,
    Sent,
}

/// Message types have codes below this.
const CODES: usize = 71;

/// Places for threads, each of which has the one that its number leads to.
const PLACES: usize = 8;

/// The messages that a realm has received and sent.
#[derive(Debug)]
pub(crate) struct RealmMessages {
    places: Box<[Messages; PLACES]>,
}

/// Messages by type.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Messages {
    received: [AtomicU64; CODES],
    sent: [AtomicU64; CODES],
}

impl RealmMessages {
    pub(crate) fn new() -> Self {
        Self {
            places: Box::new([const { Messages::new() }; PLACES]),
        }
    }

    /// Where this thread counts; only under the realm's lock.
    pub(crate) fn own(&self) -> &Messages {
        &self.places[thread_number() as usize % PLACES]
    }

    pub(crate) fn total(&self, direction: Direction, kind: MessageType) -> u64 {
        let places = self.places.iter();
        places.map(|place| place.total(direction, kind)).sum()
    }
}

impl Messages {
    pub(crate) const fn new() -> Self {
        Self {
            received: [const { AtomicU64::new(0) }; CODES],
            sent: [const { AtomicU64::new(0) }; CODES],
        }
    }

    /// Counts where nobody else does at the same time: a load and a store, without a bus lock.
    pub(crate) fn count_alone(&self, direction: Direction, kind: MessageType) {
        let count = &self.of(direction)[kind as usize];
        count.store(count.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    /// Counts where others may do so too.
    pub(crate) fn count(&self, direction: Direction, kind: MessageType) {
        self.of(direction)[kind as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn total(&self, direction: Direction, kind: MessageType) -> u64 {
        self.of(direction)[kind as usize].load(Ordering::Relaxed)
    }

    fn of(&self, direction: Direction) -> &[AtomicU64; CODES] {
        match direction {
            Direction::Received => &self.received,
            Direction::Sent => &self.sent,
        }
    }
}

/// Whether messages of a type open and close sessions: they are counted for the router worker, and all
/// others for the realm that they are said in.
pub(crate) fn is_of_sessions(kind: MessageType) -> bool {
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
