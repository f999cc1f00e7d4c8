//! The events of the node's one loop.

use std::path::PathBuf;
use std::time::Instant;

use crosstie_config::{Config, Tree};
use tokio::sync::mpsc;

use crate::management::Request;
use crate::process::Ended;
use crate::programs::StartProgram;
use crate::reload::ReloadOrder;
use crate::upgrade::News;
use crate::workers::hosted::NotStarted;

/// An event.
pub(crate) enum Event {
    /// A signal that ends the node, by its name.
    Signal(&'static str),
    /// The configured running time of the node is over.
    TimeIsUp,
    /// A worker's process has ended, or could not be started.
    Ended { run: Run, end: End },
    /// A host of components has joined the management realm.
    Ready { worker: String, pid: u32 },
    /// A host of components was not ready within its time limit.
    ReadyOverdue(Run),
    /// A host of components answered whether it could start one.
    ComponentStarted {
        run: Run,
        component: String,
        outcome: Result<(), NotStarted>,
    },
    /// A component of a host has ended; with the reason if it failed.
    ComponentEnded {
        worker: String,
        component: String,
        failure: Option<String>,
    },
    /// The session of a component has changed.
    ComponentSession {
        worker: String,
        component: String,
        news: SessionNews,
    },
    /// A worker's process is due for its next start.
    RestartDue(Run),
    /// A directory with a guest's files has changed.
    FilesChanged { worker: String, first: PathBuf },
    /// One process has exceeded its time limit to end.
    EndOverdue(Run),
    /// Processes have exceeded their time limit to end.
    KillDue,
    /// All routers have said goodbye to their sessions.
    RoutersStopped { is_all_stored: bool },
    /// A router requests the start of a program.
    StartProgram(StartProgram),
    /// A client calls a procedure of the management realm.
    Request(Request),
    /// Something happened in the upgrade of that number.
    Upgrade { number: u64, news: News },
    /// The caller of a finished upgrade has the answer, or soon will have.
    Farewell { sessions: usize, until: Instant },
    /// The process that this one has taken over from has ended.
    FormerEnded,
    /// The next step of the drain of that number.
    DrainDue(u64),
    /// The configuration is to be read anew.
    Reload(ReloadOrder),
    /// It was read, or could not be.
    Loaded {
        order: ReloadOrder,
        loaded: Result<Box<(Config, Tree)>, String>,
    },
}

/// A change of a component's session.
#[derive(Debug)]
pub(crate) enum SessionNews {
    Joined,
    /// Its `onJoin` has returned.
    Ready,
    /// It has no session, for this reason, and retries.
    Waiting(String),
}

/// One run of a worker's process. Events of an earlier run are ignored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) worker: String,
    pub(crate) number: u64,
}

/// The end of a run.
#[derive(Debug)]
pub(crate) enum End {
    Ended(Ended),
    NotStarted(String),
}

/// The sender of events. It needs no bound of its own: each worker has at most a handful of pending events, and
/// requests are bounded by their registrations.
pub(crate) type Events = mpsc::UnboundedSender<Event>;
