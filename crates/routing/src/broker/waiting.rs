//! Requests for subscriptions that wait until other nodes know of them.

use std::collections::VecDeque;

use crosstie_wamp::{RequestId, SubscriptionId};

use crate::across::Position;
use crate::identity::SessionIndex;

/// What a realm of several nodes keeps beside its subscriptions.
#[derive(Debug, Default)]
pub(super) struct Across {
    /// What ids begin from.
    pub(super) scope: u64,
    pub(super) in_force: Position,
    /// Subscriptions that wait, in the order of their positions. One may be gone, or be there again and wait for another.
    pub(super) line: VecDeque<(Position, SubscriptionId)>,
}

/// The requests for a subscription that other nodes do not know of yet. They are in its session's list and on its
/// account, and not among the subscribers: no event is to come before SUBSCRIBED.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    /// What they wait for.
    pub(super) position: Position,
    pub(super) requests: VecDeque<Request>,
}

#[derive(Debug)]
pub(super) struct Request {
    pub(super) from: SessionIndex,
    pub(super) request: RequestId,
    pub(super) wants_retained: bool,
}

/// What a request that waits takes in memory.
pub(super) const REQUEST_BYTES: isize = size_of::<Request>() as isize;

impl Waiting {
    /// Takes out what a session waits for; how many requests that were.
    pub(super) fn leave(&mut self, session: SessionIndex) -> usize {
        let before = self.requests.len();
        self.requests.retain(|request| request.from != session);
        before - self.requests.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// Whose requests they are; a session may have several.
    pub(super) fn sessions(&self) -> impl Iterator<Item = SessionIndex> {
        self.requests.iter().map(|request| request.from)
    }

    /// Bytes on the accounts of their sessions.
    pub(super) fn bytes(requests: usize) -> isize {
        requests as isize * REQUEST_BYTES
    }
}
