//! Operators' orders for a replicated vhost, and their outcomes.

use std::path::PathBuf;
use std::time::Duration;

use tokio::sync::mpsc;

/// An operator's order.
pub(crate) enum Order {
    Move(Move),
    Recover(Recover),
}

/// Moves the vhost to another node.
pub(crate) struct Move {
    /// The node's name; any ready node if absent.
    pub to: Option<String>,
    /// The deadline for that node to catch up.
    pub within: Duration,
    pub reply: Reply<Moved>,
}

/// Accepts a vhost's log as it is, or rewrites it.
pub(crate) struct Recover {
    pub(crate) means: Means,
    /// False for a dry run.
    pub is_meant: bool,
    pub reply: Reply<Recovered>,
}

/// The source of a recovery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Means {
    /// The readable rest of the log.
    Log,
    /// The given store, or else this node's store of the vhost.
    Store(Option<PathBuf>),
    /// Nothing: the vhost is empty afterwards.
    Nothing,
}

/// The outcome of a move.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moved {
    pub from: String,
    pub to: String,
    /// The time from the order until the new owner reported.
    pub taken: Duration,
    /// The part of it in which no node served: from the pause of the publishers on.
    pub paused: Duration,
}

/// The outcome of a recovery, or its plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    pub is_done: bool,
    /// The log's fault.
    pub wrong: Option<String>,
    /// The number of the last entry that this node has known.
    pub known: u64,
    /// The numbers of the first and the last entry found.
    pub found: (u64, u64),
    /// Number of entries between these that are missing or unreadable.
    pub unreadable: u64,
    /// The source of the new contents.
    pub from: String,
    pub exchanges: u64,
    pub queues: u64,
    pub bindings: u64,
    pub messages: u64,
    /// Permissions, policies and the like that were made at run time.
    pub settings: u64,
}

/// The receiver of an outcome, which gets exactly one.
pub struct Reply<T> {
    on_done: Option<Box<OnDone<T>>>,
}

type OnDone<T> = dyn FnOnce(Result<T, String>) + Send;

/// The orders that wait for a thread.
pub(super) struct Orders {
    waiting: Option<mpsc::Receiver<Order>>,
}

/// Maximum number of waiting orders.
pub(crate) const ORDERS_MAX: usize = 8;

impl Order {
    pub(crate) fn refuse(self, why: &str) {
        match self {
            Self::Move(order) => order.reply.answer(Err(why.to_owned())),
            Self::Recover(order) => order.reply.answer(Err(why.to_owned())),
        }
    }
}

impl<T> Reply<T> {
    pub fn new(on_done: impl FnOnce(Result<T, String>) + Send + 'static) -> Self {
        Self {
            on_done: Some(Box::new(on_done)),
        }
    }

    pub fn answer(mut self, answer: Result<T, String>) {
        if let Some(on_done) = self.on_done.take() {
            on_done(answer);
        }
    }
}

impl<T> Drop for Reply<T> {
    fn drop(&mut self) {
        if let Some(on_done) = self.on_done.take() {
            on_done(Err("the node is stopping".to_owned()));
        }
    }
}

impl Orders {
    pub(super) fn taken(waiting: &mut Option<mpsc::Receiver<Order>>) -> Self {
        Self {
            waiting: waiting.take(),
        }
    }

    /// Waits for the next order; pending forever without a queue.
    pub(super) async fn recv(&mut self) -> Option<Order> {
        match &mut self.waiting {
            Some(waiting) => waiting.recv().await,
            None => None,
        }
    }

    /// The next order if one waits.
    pub(super) fn next(&mut self) -> Option<Order> {
        self.waiting.as_mut()?.try_recv().ok()
    }
}
