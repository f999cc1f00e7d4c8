//! What a replicated vhost's thread is given, and whom it tells.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crosstie_config as model;
use crosstie_ledger::Ledger;
use crosstie_queues::{Position, QueueId};
use parking_lot::Mutex;
use tokio::sync::{mpsc, watch};

use super::journal::Journal;
use super::orders::Order;
use super::seen::Seen;

/// All that the thread has to know.
pub(crate) struct Task {
    pub(crate) vhost: Arc<str>,
    pub(crate) settings: model::Replicated,
    /// What other nodes know this one by.
    pub(crate) node: String,
    /// Another one at each start.
    pub(crate) incarnation: u64,
    /// Of a log that begins.
    pub(crate) log: u64,
    /// Where relative paths of the configuration begin.
    pub(crate) node_directory: PathBuf,
    /// Of the files beside the store.
    pub(crate) directory: PathBuf,
    /// The worker's own.
    pub(crate) store: PathBuf,
    /// What that has of the vhost.
    pub(crate) held: Option<Held>,
    /// What operators ask for.
    pub(crate) orders: Option<mpsc::Receiver<Order>>,
    /// Bytes that may wait for the owner's copy.
    pub(crate) waiting_bytes_max: usize,
    pub(crate) seen: Arc<Mutex<Seen>>,
    pub(crate) stopping: watch::Receiver<bool>,
    pub(crate) holder: Arc<dyn Holder>,
}

/// Who has the vhost itself, and its clients.
pub(crate) trait Holder: Send + Sync {
    /// The node owns the vhost: it is made of what the log says, and opened.
    fn open(&self, ledger: &Ledger, journal: &Arc<Journal>);

    /// The log has everything up to there; so many bytes wait.
    fn commit(&self, position: Position, waiting_bytes: usize);

    /// The log acknowledges nothing: publishers are to wait.
    fn stall(&self);

    /// The vhost is about to be another node's: publishers are not read.
    fn hold(&self);

    /// It is not, after all.
    fn go_on(&self);

    /// Copies the worker's own store to a file that must not be there. Waits for it.
    fn back_up(&self, path: &Path) -> Result<(), String>;

    /// The node does not own the vhost any more: clients are sent away.
    fn close(&self, why: &str);

    /// Ends the vhost here in good order, and closes its clients' connections. Returns the place in each
    /// queue from which on messages were never delivered; the rest is in the journal.
    fn rest(&self, why: &str) -> Vec<(QueueId, i64)>;

    /// So many bytes are in memory for the log, beside what a vhost that is open has itself.
    fn note_memory(&self, bytes: usize);

    /// Who has it instead.
    fn show(&self, whose: &Whose);
}

/// What a worker's store has of a vhost that was not replicated when it was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) queues: u64,
    pub(crate) messages: u64,
}

/// Whose a vhost is that is not this node's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Whose {
    /// Another node's, and where that is reached; empty where it says nothing of that.
    Elsewhere { node: Arc<str>, address: Arc<str> },
    /// Nobody's who is known, and why.
    Nobody { why: Arc<str> },
}

/// What of an address everybody may see: the key behind it is for nodes alone.
pub(crate) fn shown(address: &str) -> &str {
    address.split('#').next().unwrap_or_default()
}

impl Whose {
    /// What a client is told that is not let in.
    pub(crate) fn refusal(&self, vhost: &str) -> String {
        match self {
            Self::Elsewhere { node, address } if address.is_empty() => {
                format!("vhost '{vhost}' is on node {node}")
            }
            Self::Elsewhere { node, address } => {
                let address = shown(address);
                format!("vhost '{vhost}' is on node {node} at {address}")
            }
            Self::Nobody { why } => format!("vhost '{vhost}' is on no node at present: {why}"),
        }
    }
}
