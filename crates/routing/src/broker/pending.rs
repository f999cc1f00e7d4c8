//! SUBSCRIBE requests that wait until other nodes know of the subscription.

use std::collections::VecDeque;

use crosstie_wamp::{RequestId, SubscriptionId};

use crate::across::Position;
use crate::identity::SessionIndex;

/// State that a clustered realm keeps beside its subscriptions.
#[derive(Debug, Default)]
pub(super) struct Across {
    /// The base of subscription ids.
    pub(super) scope: u64,
    pub(super) in_force: Position,
    /// Waiting subscriptions, in the order of their positions. A subscription may have ended, or began again and waits
    /// for a later position.
    pub(super) line: VecDeque<(Position, SubscriptionId)>,
}

/// The requests for a subscription that other nodes do not know of yet. They are in the session's list and on its
/// account, but not among the subscribers: no EVENT may precede SUBSCRIBED.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    /// The position at which other nodes know of the subscription.
    pub(super) position: Position,
    pub(super) requests: VecDeque<Request>,
}

#[derive(Debug)]
pub(super) struct Request {
    pub(super) from: SessionIndex,
    pub(super) request: RequestId,
    pub(super) wants_retained: bool,
}

/// Memory of a waiting request.
pub(super) const REQUEST_BYTES: isize = size_of::<Request>() as isize;

impl Waiting {
    /// Removes a session's requests; returns how many.
    pub(super) fn leave(&mut self, session: SessionIndex) -> usize {
        let before = self.requests.len();
        self.requests.retain(|request| request.from != session);
        before - self.requests.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// The sessions of the requests; a session may occur several times.
    pub(super) fn sessions(&self) -> impl Iterator<Item = SessionIndex> {
        self.requests.iter().map(|request| request.from)
    }

    /// Bytes that the requests take on their sessions' accounts.
    pub(super) fn bytes(requests: usize) -> isize {
        requests as isize * REQUEST_BYTES
    }
}
