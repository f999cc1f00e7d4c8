//! Changes that must survive, in the order in which they happened.

use std::sync::Arc;

use crosstie_amqp::TableBuf;

use crate::{MessageContent, StreamChange, Time};

/// A durable queue's number. It is never reused in a vhost, so that a queue declared again has none of its
/// predecessor's messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QueueId(pub u64);

/// A position in the journal: everything up to a record, counted from the vhost's start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position(pub u64);

/// One change of the durable state.
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
        /// Its place in the order of the source's bindings, if routing depends on that (`x-consistent-hash`); otherwise
        /// 0.
        order: u64,
    },
    Unbound {
        source: Arc<str>,
        destination: Destination,
        routing_key: Arc<str>,
        arguments: TableBuf,
    },
    Enqueued {
        queue: QueueId,
        /// The order of a queue's messages; a requeued message keeps its place.
        place: i64,
        message: StoredMessage,
    },
    Dequeued {
        queue: QueueId,
        place: i64,
    },
    /// The number of times that a stored message has been delivered. Quorum queues record each delivery, so that
    /// unsettled deliveries count if the node ends. Other queues record it when the vhost rests.
    Delivered {
        queue: QueueId,
        place: i64,
        deliveries: u32,
    },
    /// All of its messages are gone.
    Purged {
        queue: QueueId,
    },
    /// The messages with those places, from the first to the last, are gone.
    Cleared {
        queue: QueueId,
        from: i64,
        to: i64,
    },
    /// Messages of a queue, which the store keeps and does not hand over. Only a store that restores makes this record.
    Kept(Kept),
    /// The vhost has ended in good order. Messages of that queue have been delivered before if their place is before
    /// `fresh_from`, or if they have a record [`Self::Delivered`]. Without this record any may have been. The record is
    /// valid until the vhost continues; a store deletes it then.
    Rested {
        queue: QueueId,
        fresh_from: i64,
    },
    /// A setting of the vhost, whose meaning only a broker knows; without a value, it is gone.
    Setting {
        key: Arc<str>,
        value: Option<Arc<str>>,
    },
    /// An operator has created the vhost, so that a start opens it without the configuration. Only a broker makes this
    /// record.
    VhostCreated,
    /// The vhost is gone with everything that earlier records have added. Only a broker makes this record, as the vhost's
    /// last.
    VhostDeleted,
}

impl Record {
    /// Counts a delivery in the same moment as the message is recorded.
    pub(crate) fn count_delivery(&mut self) {
        if let Self::Enqueued { message, .. } = self {
            message.deliveries = message.deliveries.saturating_add(1);
        }
    }
}

/// The messages of a queue that stay on the disk after a restart: all of them, or in a queue with priorities those of one
/// level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    pub queue: QueueId,
    /// The places of the first and the last.
    pub from: i64,
    pub to: i64,
    pub messages: usize,
    /// Of their bodies.
    pub body_bytes: u64,
}

/// The destination of a binding.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Destination {
    Exchange(Arc<str>),
    Queue(Arc<str>),
}

/// A message as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredMessage {
    /// Exchange, routing key, properties and body: shared with the queue.
    pub content: Arc<MessageContent>,
    pub expires_at: Option<Time>,
    /// The number of recorded deliveries.
    pub deliveries: u32,
}

impl Record {
    pub fn enqueued(queue: QueueId, place: i64, message: StoredMessage) -> Self {
        Self::Enqueued {
            queue,
            place,
            message,
        }
    }

    pub fn dequeued(queue: QueueId, place: i64) -> Self {
        Self::Dequeued { queue, place }
    }

    /// A queue that is not deleted with its last consumer.
    pub fn queue_declared(id: QueueId, name: impl Into<Arc<str>>, arguments: TableBuf) -> Self {
        Self::QueueDeclared {
            id,
            name: name.into(),
            auto_delete: false,
            arguments,
        }
    }

    /// Approximate memory of its texts and its message.
    pub fn memory_bytes(&self) -> usize {
        match self {
            Self::Enqueued { message, .. } => message.content.memory_bytes(),
            Self::Setting { key, value } => {
                key.len() + value.as_ref().map_or(0, |value| value.len())
            }
            _ => 0,
        }
    }
}

impl StoredMessage {
    /// A message that was not delivered and does not expire.
    pub fn new(content: Arc<MessageContent>) -> Self {
        Self {
            content,
            expires_at: None,
            deliveries: 0,
        }
    }
}

/// Records that were not handed to a store yet.
#[derive(Debug, Default)]
pub struct Journal {
    pub records: Vec<Record>,
    /// Changes of streams, whose messages are in files of their own. A store may commit the records once these are
    /// written: a dead letter is in its stream before its original is gone.
    pub streams: Vec<StreamChange>,
    /// Up to and including the last of both.
    pub position: Position,
}
