//! What a replicated vhost's thread is given, and whom it tells.

use std::path::PathBuf;
use std::sync::Arc;

use crosstie_config as model;
use crosstie_ledger::Ledger;
use crosstie_queues::Position;
use parking_lot::Mutex;
use tokio::sync::watch;

use super::journal::Journal;
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

    /// The node does not own the vhost any more: clients are sent away.
    fn close(&self, why: &str);

    /// Who has it instead.
    fn show(&self, whose: &Whose);
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
