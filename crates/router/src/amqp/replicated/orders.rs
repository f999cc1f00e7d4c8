//! What operators ask of a replicated vhost, and what they are answered.

use std::path::PathBuf;
use std::time::Duration;

use tokio::sync::mpsc;

/// Something that an operator asks for.
pub(crate) enum Order {
    Move(Move),
    Recover(Recover),
}

/// Have another node own the vhost.
pub(crate) struct Move {
    /// By its name; whoever is ready where there is none.
    pub(crate) to: Option<String>,
    /// How long that one is given.
    pub(crate) within: Duration,
    pub(crate) reply: Reply<Moved>,
}

/// Have a vhost's log taken, or written anew.
pub(crate) struct Recover {
    pub(crate) means: Means,
    /// Not only to be told what would be done.
    pub(crate) is_meant: bool,
    pub(crate) reply: Reply<Recovered>,
}

/// What a log is recovered from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Means {
    /// What is left of it.
    Log,
    /// A store: that file, or the one that the node has of the vhost.
    Store(Option<PathBuf>),
    /// Nothing: it is empty afterwards.
    Nothing,
}

/// A vhost is another node's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moved {
    pub from: String,
    pub to: String,
    /// From when it was asked for until the other one said that it has it.
    pub taken: Duration,
}

/// What has been done about a log, or would be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    pub is_done: bool,
    /// What was wrong with it.
    pub wrong: Option<String>,
    /// The number of the last entry that the node has known.
    pub known: u64,
    /// The numbers of the first entry that there is and of the last one.
    pub found: (u64, u64),
    /// Entries that cannot be read, or are missing between those.
    pub unreadable: u64,
    /// Where what is in it then is from.
    pub from: String,
    pub exchanges: u64,
    pub queues: u64,
    pub bindings: u64,
    pub messages: u64,
}

/// Who is to be told, and is so in any case.
pub(crate) struct Reply<T> {
    on_done: Option<Box<OnDone<T>>>,
}

type OnDone<T> = dyn FnOnce(Result<T, String>) + Send;

/// The orders that wait for a thread.
pub(super) struct Orders {
    waiting: Option<mpsc::Receiver<Order>>,
}

/// Orders that may wait.
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
    pub(crate) fn new(on_done: impl FnOnce(Result<T, String>) + Send + 'static) -> Self {
        Self {
            on_done: Some(Box::new(on_done)),
        }
    }

    pub(crate) fn answer(mut self, answer: Result<T, String>) {
        if let Some(on_done) = self.on_done.take() {
            on_done(answer);
        }
    }
}

impl<T> Drop for Reply<T> {
    fn drop(&mut self) {
        if let Some(on_done) = self.on_done.take() {
            on_done(Err("the node is ending".to_owned()));
        }
    }
}

impl Orders {
    pub(super) fn taken(waiting: &mut Option<mpsc::Receiver<Order>>) -> Self {
        Self {
            waiting: waiting.take(),
        }
    }

    /// The next one; never ends.
    pub(super) async fn recv(&mut self) -> Option<Order> {
        match &mut self.waiting {
            Some(waiting) => waiting.recv().await,
            None => None,
        }
    }

    /// One that waits already.
    pub(super) fn next(&mut self) -> Option<Order> {
        self.waiting.as_mut()?.try_recv().ok()
    }
}
