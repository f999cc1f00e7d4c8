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
    /// Everything up to there is written, or was refused. `None`: only old messages were removed.
    pub position: Option<Position>,
    /// How many submissions that were.
    pub submissions: usize,
    /// The streams that have changed, and the messages at their ends if they are few.
    pub streams: Vec<(QueueId, StreamExtent, Option<Arc<StreamPage>>)>,
    /// Why messages of streams could not be written, all of which were refused.
    pub error: Option<String>,
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
}

#[derive(Default)]
pub(crate) struct Reads {
    pub(crate) orders: VecDeque<Order>,
    /// Files and directories to be removed.
    pub(crate) removed: Vec<String>,
    pub(crate) is_stopping: bool,
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
