//! Changes that must survive, in the order in which they happened.

use std::sync::Arc;

use crosstie_amqp::TableBuf;

use crate::{MessageContent, Time};

/// A durable queue's number: never given twice in a vhost, so that a queue declared again under
/// a name has none of the old one's messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QueueId(pub u64);

/// How much of a journal: everything up to a record, counted from the vhost's start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position(pub u64);

/// One thing that happened to what survives.
#[derive(Clone, Debug, PartialEq)]
pub enum Record {
    ExchangeDeclared {
        name: Arc<str>,
        kind: Arc<str>,
        auto_delete: bool,
        internal: bool,
        arguments: TableBuf,
    },
    ExchangeDeleted {
        name: Arc<str>,
    },
    QueueDeclared {
        id: QueueId,
        name: Arc<str>,
        auto_delete: bool,
        arguments: TableBuf,
    },
    /// With its messages.
    QueueDeleted {
        id: QueueId,
    },
    Bound {
        source: Arc<str>,
        destination: Destination,
        routing_key: Arc<str>,
        arguments: TableBuf,
    },
    Unbound {
        source: Arc<str>,
        destination: Destination,
        routing_key: Arc<str>,
        arguments: TableBuf,
    },
    Enqueued {
        queue: QueueId,
        /// Messages of a queue are in the order of this; a requeued one keeps its place.
        place: i64,
        message: StoredMessage,
    },
    Dequeued {
        queue: QueueId,
        place: i64,
    },
    /// A kept message has been delivered so often by now. Quorum queues say so of each delivery: one
    /// that is out when the node ends counts. Other queues say so when the vhost rests.
    Delivered {
        queue: QueueId,
        place: i64,
        deliveries: u32,
    },
    /// All of its messages are gone.
    Purged {
        queue: QueueId,
    },
    /// The vhost has ended in good order. Messages of that queue have been delivered before if their
    /// place is before `fresh_from`, or if they have a record [`Self::Delivered`]. Without this record any may
    /// have been. The record holds until the vhost goes on: a store deletes it then.
    Rested {
        queue: QueueId,
        fresh_from: i64,
    },
}

impl Record {
    /// The message is sent in the moment in which it is kept.
    pub(crate) fn count_delivery(&mut self) {
        if let Self::Enqueued { message, .. } = self {
            message.deliveries = message.deliveries.saturating_add(1);
        }
    }
}

/// The destination of a binding.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Destination {
    Exchange(Arc<str>),
    Queue(Arc<str>),
}

/// A message as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredMessage {
    /// Where it was published to, its properties' bytes, its body: shared with the queue.
    pub content: Arc<MessageContent>,
    pub expires_at: Option<Time>,
    /// How often it has been delivered, if its queue has said so.
    pub deliveries: u32,
}

/// Records that no store has taken yet.
#[derive(Debug, Default)]
pub struct Journal {
    pub records: Vec<Record>,
    /// Up to and with the last of them.
    pub position: Position,
}
