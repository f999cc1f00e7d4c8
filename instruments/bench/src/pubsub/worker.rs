//! The processes of `bench pubsub`, and their messages with the bench.

use serde::{Deserialize, Serialize};

use super::ledger::{Found, Since};
use super::publisher::{self, Published, PublisherOrder};
use super::relay::{self, RelayOrder};
use super::schedule::Schedule;
use super::subscribers::{self, SubscribersOrder};
use crate::process::{WorkerError, descriptors};

pub(crate) const ROLE: &str = "pubsub";

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Order {
    Subscribers(SubscribersOrder),
    Publisher(PublisherOrder),
    Relay(RelayOrder),
}

/// An instruction to a driver; the end of its input means: leave.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum Instruction {
    Go(Schedule),
    /// To a publisher: the run ends here.
    Stop,
    /// To subscribers: publications before this number were made, and no more will be.
    Expect {
        end: u64,
    },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum DriverReport {
    /// So many of a process's subscribers have subscribed.
    Subscribed { sessions: usize },
    /// Connected, and subscribed if that is its part.
    Ready,
    /// A second of a run is over.
    Tick {
        second: u64,
        sent: u64,
        since: Since,
    },
    /// A publisher's run is over.
    Published(Published),
    /// A run of subscribers is over.
    Found(Found),
    /// It has left in order.
    Left,
}

pub(crate) fn work(order: Order) -> Result<(), WorkerError> {
    descriptors::raise();
    match order {
        Order::Subscribers(order) => subscribers::work(&order),
        Order::Publisher(order) => publisher::work(&order),
        Order::Relay(order) => relay::work(&order),
    }
}

/// Sends the lines of one process's seconds.
pub(super) struct Ticks {
    start_ns: u64,
    next: u64,
}

const SECOND_NS: u64 = 1_000_000_000;

impl Ticks {
    pub(super) fn new(start_ns: u64) -> Self {
        Self { start_ns, next: 1 }
    }

    /// When the next second is over.
    pub(super) fn due_ns(&self) -> u64 {
        self.start_ns + self.next * SECOND_NS
    }

    /// The number of a second that is over, once.
    pub(super) fn over(&mut self, now_ns: u64) -> Option<u64> {
        (now_ns >= self.due_ns()).then(|| {
            self.next += 1;
            self.next - 1
        })
    }
}
