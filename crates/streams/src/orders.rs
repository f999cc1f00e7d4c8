//! What the keeper's threads are handed, and hand back.

use std::collections::{HashMap, VecDeque};
use std::mem;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use crosstie_queues::{
    Position, QueueId, Record, StreamChange, StreamExtent, StreamPage, StreamWant,
};

use crate::directory::Key;
use crate::log::Log;

/// How the changes of a vhost were written.
#[derive(Debug)]
pub struct Written {
    /// The records that were submitted with them, in their order: a store may have them now.
    pub records: Vec<Record>,
    /// Everything up to there is written, was refused, or is tried again without its publisher. `None`: old messages were
    /// removed, or some were written at another attempt.
    pub position: Option<Position>,
    /// How many submissions that were.
    pub submissions: usize,
    /// The streams that have changed, and the messages at their ends if they are few.
    pub streams: Vec<(QueueId, StreamExtent, Option<Arc<StreamPage>>)>,
    /// Why messages of streams could not be written: they were refused, or are tried again.
    pub error: Option<String>,
    /// Whether messages were written and no others of the vhost wait for another attempt.
    pub is_going_on: bool,
    /// What else went wrong.
    pub warning: Option<String>,
}

/// A page for each reader that requested one.
pub type ReadPages = Vec<(StreamWant, Arc<StreamPage>)>;

#[derive(Default)]
pub(crate) struct Shared {
    pub(crate) waiting: Mutex<Waiting>,
    pub(crate) wake_writer: Condvar,
    pub(crate) reads: Mutex<Reads>,
    pub(crate) wake_reader: Condvar,
    pub(crate) logs: Mutex<HashMap<Key, Arc<Log>>>,
}

#[derive(Default)]
pub(crate) struct Waiting {
    pub(crate) submissions: Vec<Submission>,
    /// Bytes that were submitted and not taken, and those that were taken and are not written.
    pub(crate) bytes: usize,
    pub(crate) taken_bytes: usize,
    pub(crate) is_stopping: bool,
    /// Some could not be written until the end.
    pub(crate) is_given_up: bool,
}

impl Waiting {
    pub(crate) fn take(&mut self) -> Vec<Submission> {
        self.taken_bytes += mem::take(&mut self.bytes);
        mem::take(&mut self.submissions)
    }
}

pub(crate) struct Submission {
    pub(crate) vhost: Arc<str>,
    pub(crate) changes: Vec<StreamChange>,
    pub(crate) records: Vec<Record>,
    pub(crate) position: Position,
    pub(crate) bytes: usize,
    /// The store has nothing of the vhost any more: all of its streams go.
    pub(crate) is_vhost_gone: bool,
}

#[derive(Default)]
pub(crate) struct Reads {
    pub(crate) orders: VecDeque<Order>,
    /// In the order of their removal.
    pub(crate) removed: VecDeque<Removed>,
    /// What the paths of removed files begin with: their handles are closed before the next order is read, since later
    /// files may have these paths.
    pub(crate) forgotten: Vec<String>,
    pub(crate) is_stopping: bool,
}

/// What the reader's thread removes, a file at a time between orders.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Removed {
    File(String),
    /// A directory with all that it has.
    Tree(String),
    /// A directory whose files are removed before it.
    Directory(String),
}

impl Reads {
    pub(crate) fn remove_tree(&mut self, path: String) {
        self.removed.push_back(Removed::Tree(path));
    }

    pub(crate) fn remove_file(&mut self, path: String) {
        self.forgotten.push(path.clone());
        self.removed.push_back(Removed::File(path));
    }

    /// The files of a directory have other paths by now, and others may get theirs.
    pub(crate) fn forget_directory(&mut self, path: &str) {
        let within = format!("{path}/");
        let is_within = |removed: &Removed| match removed {
            Removed::File(path) | Removed::Tree(path) | Removed::Directory(path) => {
                path.starts_with(&within)
            }
        };
        self.removed.retain(|removed| !is_within(removed));
        self.forgotten.push(within);
    }
}

pub(crate) struct Order {
    pub(crate) vhost: Arc<str>,
    pub(crate) want: StreamWant,
    pub(crate) bytes_max: usize,
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis() as u64)
}
