//! Everything that can wake the node's one loop.

use std::path::PathBuf;

use tokio::sync::mpsc;

use crate::management::Request;
use crate::process::Ended;
use crate::programs::StartProgram;
use crate::workers::components::NotStarted;

/// What happened.
pub(crate) enum Event {
    /// A signal that ends the node, by its name.
    Signal(&'static str),
    /// The time that the node was given is over.
    TimeIsUp,
    /// A worker's process is there no more, or never came to be.
    Ended { run: Run, end: End },
    /// A host of components has joined the management realm.
    Ready { worker: String, pid: u32 },
    /// A host of components had all the time there is to get ready.
    ReadyOverdue(Run),
    /// A host of components answered whether it could start one.
    ComponentStarted {
        run: Run,
        component: String,
        outcome: Result<(), NotStarted>,
    },
    /// A host of components says that one of them is there no more; with the reason if it failed.
    ComponentEnded {
        worker: String,
        component: String,
        failure: Option<String>,
    },
    /// A host of components says how the session of one of them is.
    ComponentSession {
        worker: String,
        component: String,
        news: SessionNews,
    },
    /// A worker's process is to be started again.
    RestartDue(Run),
    /// Something changed in a directory that a guest's files are in.
    FilesChanged { worker: String, first: PathBuf },
    /// One process that was asked to end had all the time there is for it.
    EndOverdue(Run),
    /// Processes that were asked to end had all the time there is for it.
    KillDue,
    /// All routers have said goodbye to their sessions.
    RoutersStopped { is_all_stored: bool },
    /// A router wants a program started.
    StartProgram(StartProgram),
    /// Somebody calls a procedure of the management realm.
    Request(Request),
}

/// How the session of a component is.
#[derive(Debug)]
pub(crate) enum SessionNews {
    Joined,
    /// Its `onJoin` has returned.
    Ready,
    /// It has none, with the reason, and tries again.
    Waiting(String),
}

/// One run of a worker's process. What is told about an earlier one is of no interest any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) worker: String,
    pub(crate) number: u64,
}

/// How a run ended.
#[derive(Debug)]
pub(crate) enum End {
    Ended(Ended),
    NotStarted(String),
}

/// Where events come from. There is no bound of its own: each worker has at most a handful under
/// way, and requests are bounded where they are registered.
pub(crate) type Events = mpsc::UnboundedSender<Event>;
