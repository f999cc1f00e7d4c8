//! The inputs of a replicated vhost's thread, and the receiver of its results.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crosstie_config as model;
use crosstie_ledger::{Config, Ledger};
use crosstie_metadata::LogPlace;
use crosstie_queues::{Paging, Position, QueueId, Record};
use parking_lot::Mutex;
use tokio::sync::{mpsc, watch};

use super::held::Held;
use super::journal::Journal;
use super::orders::Order;
use super::seen::Seen;

/// The settings of the thread.
pub(crate) struct Task {
    pub vhost: Arc<str>,
    pub settings: model::Replicated,
    /// This node's name for other nodes.
    pub node: String,
    /// Changes at each start.
    pub(crate) incarnation: u64,
    /// The id of a new log.
    pub log: u64,
    /// The base of the configuration's relative paths.
    pub(crate) node_directory: PathBuf,
    /// The directory of the files beside the store.
    pub directory: PathBuf,
    /// The worker's store.
    pub store: PathBuf,
    /// The vhost's contents in that store.
    pub held: Option<Held>,
    /// Orders from operators.
    pub(crate) orders: Option<mpsc::Receiver<Order>>,
    /// When the messages of long queues are left to the log.
    pub(crate) paging: Paging,
    /// Maximum bytes that wait for the owner's copy.
    pub(crate) waiting_bytes_max: usize,
    pub seen: Arc<Mutex<Seen>>,
    pub stopping: watch::Receiver<bool>,
    pub(crate) holder: Arc<dyn Holder>,
}

impl Task {
    /// The sizes of its ledger.
    pub(super) fn config(&self) -> Config {
        Config {
            resident_bytes_max: self.paging.memory_bytes as u64,
            long_messages: self.paging.messages,
            long_body_bytes: self.paging.body_bytes,
            crowded_messages: self.paging.crowded_messages,
            crowded_body_bytes: self.paging.crowded_body_bytes,
            ..Config::default()
        }
    }
}

/// Holds the vhost itself, and its clients.
pub(crate) trait Holder: Send + Sync {
    /// Begins to build the vhost, which nobody sees before it is opened.
    fn build(self: Arc<Self>) -> Box<dyn Building>;

    /// The log has acknowledged everything up to `position`; that many bytes still wait. Its ledger has that many bytes of
    /// messages in memory.
    fn commit(&self, position: Position, waiting_bytes: usize, of_messages: usize);

    /// The log acknowledges nothing: blocks publishers.
    fn stall(&self);

    /// A handover begins: pauses publishers.
    fn hold(&self);

    /// The handover was cancelled: resumes publishers.
    fn go_on(&self);

    /// Copies the worker's store to a file that must not exist yet. Blocks until it is written.
    fn back_up(&self, path: &Path) -> Result<(), String>;

    /// The node no longer owns the vhost: closes its clients.
    fn close(&self, why: &str);

    /// Stops the vhost in order, and closes its clients. Returns for each queue the position from which on messages
    /// were never delivered; the remaining records are in the journal.
    fn rest(&self, why: &str) -> Vec<(QueueId, i64)>;

    /// Sets the bytes of memory used for the log, and of the log's messages. Those that the open vhost has in memory, too,
    /// count once. Returns whether memory is crowded.
    fn note_memory(&self, bytes: usize, of_messages: usize) -> bool;

    /// Bytes of the next page of a deep queue, if messages of so many bytes are on their way into memory.
    fn page_bytes(&self, under_way: usize) -> usize;

    /// Shows the owner.
    fn show(&self, whose: &Whose);
}

/// A vhost that is being built from its log's records.
pub(crate) trait Building: Send {
    /// Restores records, in the log's order.
    fn restore(&mut self, records: Vec<Record>);

    /// Bytes of its messages, with their holders.
    fn memory_bytes(&self) -> usize;

    /// The node owns the vhost: restores the last records and opens it.
    fn open(self: Box<Self>, beginning: Beginning, journal: &Arc<Journal>);
}

/// The log as a term begins.
#[derive(Debug, Default)]
pub(crate) struct Beginning {
    /// The positions from which on messages were never delivered.
    pub(crate) rested: Vec<Record>,
    /// The epochs that have set its settings.
    pub(crate) epochs: BTreeMap<Arc<str>, u64>,
    pub(crate) place: LogPlace,
}

impl Beginning {
    pub(super) fn of(ledger: &Ledger) -> Self {
        let status = ledger.status();
        let epochs = ledger.setting_epochs();
        Self {
            rested: ledger.rested().collect(),
            epochs: epochs
                .map(|(key, epoch)| (Arc::clone(key), epoch))
                .collect(),
            place: LogPlace {
                log: status.log,
                epoch: status.epoch,
                sequence: status.sequence.0,
            },
        }
    }
}

/// The owner of a vhost that this node does not own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Whose {
    /// Another node, with its address; empty if it announces none.
    Elsewhere { node: Arc<str>, address: Arc<str> },
    /// No known node, with the reason.
    Nobody { why: Arc<str> },
}

/// The public part of an announced address: the key behind it is for nodes alone.
pub(crate) fn shown(address: &str) -> &str {
    address.split('#').next().unwrap_or_default()
}

impl Whose {
    /// The text for a refused client.
    pub fn refusal(&self, vhost: &str) -> String {
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
