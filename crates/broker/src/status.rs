//! Listings of AMQP for operators.

use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use crosstie_config::Json;

use super::broker::Broker;
use super::flow::Resource;
use super::policies::AppliedPolicies;
use super::replicated::{self, Whose, shown};
use super::replication::{Ownership, Replicated};

/// A running vhost.
#[derive(Clone, Debug, PartialEq)]
pub struct VhostStatus {
    pub name: String,
    pub queues: usize,
    pub exchanges: usize,
    pub bindings: usize,
    pub connections: usize,
    pub channels: usize,
    pub consumers: usize,
    pub messages_ready: u64,
    pub messages_unacked: u64,
    /// Bytes of messages in memory.
    pub memory_bytes: usize,
}

/// A replicated vhost.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplicatedStatus {
    pub name: String,
    /// This node's role: `detached`, `standby`, `claiming` or `owner`.
    pub role: &'static str,
    /// The owner node, if known.
    pub owner: Option<String>,
    pub epoch: u64,
    /// The last log entry that this node knows.
    pub entries: u64,
    /// Number of entries that the owner has written and this node has not read.
    pub lag_entries: u64,
    /// Bytes that the log has not acknowledged.
    pub waiting_bytes: u64,
    /// Why the vhost has no owner, or is at risk of loss.
    pub alarm: Option<String>,
}

/// A queue.
#[derive(Clone, Debug, PartialEq)]
pub struct QueueStatus {
    pub name: String,
    /// `classic` or `quorum`.
    pub kind: &'static str,
    pub durable: bool,
    pub exclusive: bool,
    pub auto_delete: bool,
    /// A JSON object.
    pub arguments: Json,
    pub messages_ready: u64,
    pub messages_unacked: u64,
    /// Dead letters that it keeps until their targets accept them.
    pub dead_letters_kept: u64,
    pub consumers: usize,
    /// Bytes of its messages.
    pub bytes: usize,
    pub policies: AppliedPolicies,
}

/// An exchange; the default one has no name.
#[derive(Clone, Debug, PartialEq)]
pub struct ExchangeStatus {
    pub name: String,
    /// `direct`, `fanout`, `topic` or `headers`.
    pub kind: String,
    pub durable: bool,
    pub auto_delete: bool,
    pub internal: bool,
    /// Messages that it holds back until they are due.
    pub messages_delayed: u64,
    /// A JSON object.
    pub arguments: Json,
    pub policies: AppliedPolicies,
}

/// A binding. Bindings of the default exchange, one per queue, are not listed.
#[derive(Clone, Debug, PartialEq)]
pub struct BindingStatus {
    pub source: String,
    pub destination: String,
    /// The destination is an exchange, not a queue.
    pub is_to_exchange: bool,
    pub routing_key: String,
    /// A JSON object.
    pub arguments: Json,
}

/// A connection whose client is in a vhost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionStatus {
    /// Its number for [`super::Operators::close_connection`], never reused.
    pub number: u64,
    /// The connection name sent by the client; empty if it sent none.
    pub name: String,
    pub user: String,
    pub vhost: String,
    /// `tcp:ADDRESS:PORT`, or `unix:pid=PID`.
    pub peer: String,
    /// The client's product and version, as `pika 1.3.2`.
    pub client: String,
    pub channels: usize,
    /// `running`, `blocked` or `closing`.
    pub state: &'static str,
    pub since: SystemTime,
}

/// Why publishers are blocked, or durable messages not stored.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Alarm {
    /// The store cannot write.
    StoreFailing { why: String },
    /// The store's disk has fewer free bytes than this.
    DiskLow { bytes_min: u64 },
    /// Messages use the maximum memory.
    MemoryFull { bytes_max: usize },
    /// An operator has publishers blocked, as if this were short.
    Raised { resource: Resource },
    /// The store cannot read the next messages of a queue; the other queues are served.
    QueueUnreadable {
        vhost: String,
        queue: String,
        why: String,
    },
    /// Queues keep dead letters that their targets do not accept.
    DeadLettersRefused {
        vhost: String,
        queue: String,
        queues: usize,
        letters: usize,
    },
    /// A replicated vhost has no owner, or is at risk of loss.
    Ledger { vhost: String, why: String },
}

impl Alarm {
    /// A one-word name.
    pub fn name(&self) -> &'static str {
        match self {
            Self::StoreFailing { .. } => "store",
            Self::DiskLow { .. } => "disk",
            Self::MemoryFull { .. } => "memory",
            Self::Raised { resource } => resource.name(),
            Self::QueueUnreadable { .. } => "queue",
            Self::DeadLettersRefused { .. } => "dead-letters",
            Self::Ledger { .. } => "ledger",
        }
    }
}

impl fmt::Display for Alarm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::StoreFailing { why } => write!(f, "the store cannot write: {why}"),
            Self::DiskLow { bytes_min } => write!(
                f,
                "the disk is low, publishers of persistent messages are blocked: {bytes_min} bytes \
                 should be free for the store"
            ),
            Self::MemoryFull { bytes_max } => write!(
                f,
                "memory for messages is full, publishers are blocked: {bytes_max} bytes are the \
                 most"
            ),
            Self::Raised { resource } => write!(
                f,
                "an operator raised the alarm of {}, publishers are blocked",
                resource.name()
            ),
            Self::QueueUnreadable { vhost, queue, why } => write!(
                f,
                "the next messages of queue '{queue}' in vhost '{vhost}' cannot be read: {why}"
            ),
            Self::DeadLettersRefused {
                vhost,
                queue,
                queues,
                letters,
            } => write!(
                f,
                "vhost '{vhost}' keeps {letters} dead letters whose targets are missing or full; queues \
                 with such letters: {queues}, one of them is '{queue}'"
            ),
            Self::Ledger { vhost, why } => write!(f, "replicated vhost '{vhost}': {why}"),
        }
    }
}

/// A broker, with the id of its router.
pub type Named<'b> = (&'b str, Arc<Broker>);

/// The alarms, each with its router.
pub fn alarms<'b>(
    brokers: impl Iterator<Item = Named<'b>>,
) -> impl Iterator<Item = (&'b str, Alarm)> {
    brokers.flat_map(|(id, broker)| {
        let alarms = broker.alarms();
        alarms.into_iter().map(move |alarm| (id, alarm))
    })
}

/// The replicated vhosts, each with its router.
pub fn replicated_vhosts<'b>(
    brokers: impl Iterator<Item = Named<'b>>,
) -> impl Iterator<Item = (&'b str, Arc<Replicated>)> {
    brokers.flat_map(|(id, broker)| {
        let replicated = broker.replicated().to_vec().into_iter();
        replicated.map(move |vhost| (id, vhost))
    })
}

/// The replicated vhosts on the status page.
pub fn replicated_page<'b>(brokers: impl Iterator<Item = Named<'b>>) -> String {
    replicated::page(replicated_vhosts(brokers).map(|(router, vhost)| {
        let owner = match vhost.ownership() {
            Ownership::Here(_) => "this node".to_owned(),
            Ownership::NotHere(Whose::Elsewhere { node, address }) => {
                format!("{node} {}", shown(&address))
            }
            Ownership::NotHere(Whose::Nobody { why }) => format!("none: {why}"),
        };
        (router, Arc::clone(&vhost.name), vhost.seen(), owner)
    }))
}
