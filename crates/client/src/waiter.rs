//! The waiters for the answers to requests.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crosstie_wamp::PublicationId;
use tokio::sync::{mpsc, oneshot};

use crate::arguments::Arguments;
use crate::error::Failure;
use crate::session::ListenerKey;

/// The waiter for the answer to a request.
#[derive(Debug)]
pub(crate) enum Waiter {
    /// Waits for a single answer.
    Answer(oneshot::Sender<Result<Reply, Failure>>),
    /// Waits for results, of which only the last ends the call. One place is reserved for that last one.
    Results {
        results: mpsc::Sender<Result<Reply, Failure>>,
        overflow: Arc<AtomicBool>,
    },
    /// None: a listener is being restored in a new session.
    Restoration(ListenerKey),
}

/// The answer to a request.
#[derive(Debug)]
pub(crate) enum Reply {
    Progress(Arguments),
    Result(Arguments),
    Published(PublicationId),
    Done,
}

impl Waiter {
    /// Passes the final answer on.
    pub(crate) fn settle(self, outcome: Result<Reply, Failure>) {
        match self {
            // If the waiter is gone, the answer has no receiver.
            Self::Answer(sender) => drop(sender.send(outcome)),
            Self::Results { results, .. } => drop(results.try_send(outcome)),
            Self::Restoration(_) => {}
        }
    }
}
