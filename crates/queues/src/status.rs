//! The listings for operators.

use std::sync::Arc;

use crosstie_amqp::TableBuf;

use crate::policy::Applied;
use crate::{
    ChannelTally, ConnectionKey, Deliveries, Destination, ExchangeTally, QueueTally, Sizes,
};

/// A part of a listing.
#[derive(Clone, Debug, PartialEq)]
pub struct Part<T> {
    pub items: Vec<T>,
    /// The place at which the next part begins; `None`: this was the last.
    pub next: Option<usize>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct QueueStatus {
    pub name: Arc<str>,
    /// `classic`, `quorum` or `stream`.
    pub kind: &'static str,
    pub durable: bool,
    pub exclusive: bool,
    pub auto_delete: bool,
    pub arguments: TableBuf,
    /// Of a stream: its offsets from the first kept one to the last.
    pub messages_ready: usize,
    pub messages_unacknowledged: usize,
    /// Ready messages in memory. Those on the disk alone are the rest.
    pub messages_in_memory: usize,
    /// Bytes of all its messages; a message in several queues counts in each.
    pub message_bytes: usize,
    /// Dead letters that it keeps until their targets have accepted them; they count for its bounds.
    pub dead_letters_kept: usize,
    pub consumers: usize,
    /// The policies that apply to it.
    pub applied: Option<Arc<Applied>>,
    pub tally: QueueTally,
}

/// A queue in the detail of RabbitMQ's management API.
#[derive(Clone, Debug, PartialEq)]
pub struct QueueView {
    pub status: QueueStatus,
    /// The consumer with the exclusive right to the queue.
    pub exclusive_consumer: Option<Arc<str>>,
    /// The active consumer of a queue with `x-single-active-consumer`.
    pub active_consumer: Option<Arc<str>>,
    /// The connection that an exclusive queue belongs to.
    pub owner: Option<ConnectionKey>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ExchangeStatus {
    pub name: Arc<str>,
    /// `direct`, `fanout`, `topic`, `headers`, or one of RabbitMQ's plugins.
    pub kind: Arc<str>,
    pub durable: bool,
    pub auto_delete: bool,
    pub internal: bool,
    pub arguments: TableBuf,
    /// Bindings from it; those of the default exchange are not counted.
    pub bindings: usize,
    /// Messages that it holds back until they are due (`x-delayed-message`).
    pub messages_delayed: usize,
    /// The policies that apply to it.
    pub applied: Option<Arc<Applied>>,
    pub tally: ExchangeTally,
}

#[derive(Clone, Debug, PartialEq)]
pub struct BindingStatus {
    /// Empty: the default exchange.
    pub source: Arc<str>,
    pub destination: Destination,
    pub routing_key: Arc<str>,
    pub arguments: TableBuf,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ConsumerStatus {
    pub connection: ConnectionKey,
    pub queue: Arc<str>,
    pub consumer_tag: Arc<str>,
    pub user: Arc<str>,
    pub channel: u16,
    pub no_ack: bool,
    pub exclusive: bool,
    /// 0: without limit.
    pub prefetch_count: u16,
    /// `x-priority`.
    pub priority: i64,
    /// Messages that were sent to it and that it has not answered.
    pub messages_unacknowledged: usize,
    /// Whether it does not wait behind a single active consumer.
    pub active: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ChannelStatus {
    pub user: Arc<str>,
    pub number: u16,
    pub confirms: bool,
    pub consumers: usize,
    pub messages_unacknowledged: usize,
    pub messages_unconfirmed: usize,
    /// 0: without limit.
    pub prefetch_count: u16,
    /// For all consumers together; 0: without limit.
    pub prefetch_count_global: u16,
    /// Whether it has selected transactions.
    pub is_transactional: bool,
    /// Publications and acknowledgements of its open transaction.
    pub uncommitted: Uncommitted,
    pub tally: ChannelTally,
}

/// The methods of an open transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Uncommitted {
    pub messages: usize,
    pub acknowledgements: usize,
}

/// Dead letters that queues keep because a target is missing or full.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedLetters {
    /// One of the queues.
    pub queue: Arc<str>,
    pub queues: usize,
    /// Those of all queues.
    pub letters: usize,
}

/// Gauges and counters of a vhost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub connections: usize,
    pub channels: usize,
    pub consumers: usize,
    pub queues: usize,
    pub exchanges: usize,
    pub bindings: usize,
    pub messages_ready: usize,
    pub messages_unacknowledged: usize,
    pub memory_bytes: usize,
    /// Bytes of messages that were published and not committed.
    pub uncommitted_bytes: usize,
    /// Bytes of the names, keys and arguments of queues, exchanges and bindings.
    pub definition_bytes: usize,
    /// Words and fields of the patterns of bindings.
    pub pattern_nodes: usize,
    /// Messages in the histories of exchanges, and their bytes, shared with queues.
    pub history_messages: usize,
    pub history_bytes: usize,
    /// Messages that exchanges hold back until they are due.
    pub messages_delayed: usize,
    /// Dead letters that have not been published yet.
    pub dead_letters_waiting: usize,
    /// Dead letters that queues keep until their targets have accepted them.
    pub dead_letters_kept: usize,
    /// Channels that have published.
    pub publishers: usize,
    /// Positions in the journal: of the last record, and of the last one that a store has.
    pub recorded: u64,
    pub stored: u64,
    /// Counters since the start, from here on.
    pub published: u64,
    /// Published on channels in confirm mode.
    pub published_to_confirm: u64,
    /// Queues that publications were routed to.
    pub routed: u64,
    pub delivered: u64,
    pub acknowledged: u64,
    pub redelivered: u64,
    pub confirmed: u64,
    pub returned: u64,
    pub unroutable: u64,
    pub expired: u64,
    /// Messages dropped by a bound of their queue, or rejected, without a dead-letter exchange.
    pub dropped: u64,
    pub dead_lettered: u64,
    /// The dropped dead letters that followed from one message beside too many others.
    pub dead_letters_cut: u64,
    /// Messages that left a history before its length was reached, because all histories together had too many bytes.
    pub history_evicted: u64,
    /// Transactions.
    pub committed: u64,
    pub rolled_back: u64,
    pub channels_opened: u64,
    pub channels_closed: u64,
    /// Declarations of queues, new or not.
    pub queues_declared: u64,
    pub queues_created: u64,
    pub queues_deleted: u64,
    /// Messages that left queues, by [`crate::QueueKind`].
    pub deliveries: [Deliveries; 3],
    /// The sizes of all that were published.
    pub sizes: Sizes,
}

impl Counts {
    /// Adds the counters of another vhost, and no gauges.
    pub fn add_counters(&mut self, other: &Self) {
        let counters: [(&mut u64, u64); 21] = [
            (&mut self.published, other.published),
            (&mut self.published_to_confirm, other.published_to_confirm),
            (&mut self.routed, other.routed),
            (&mut self.delivered, other.delivered),
            (&mut self.acknowledged, other.acknowledged),
            (&mut self.redelivered, other.redelivered),
            (&mut self.confirmed, other.confirmed),
            (&mut self.returned, other.returned),
            (&mut self.unroutable, other.unroutable),
            (&mut self.expired, other.expired),
            (&mut self.dropped, other.dropped),
            (&mut self.dead_lettered, other.dead_lettered),
            (&mut self.dead_letters_cut, other.dead_letters_cut),
            (&mut self.history_evicted, other.history_evicted),
            (&mut self.committed, other.committed),
            (&mut self.rolled_back, other.rolled_back),
            (&mut self.channels_opened, other.channels_opened),
            (&mut self.channels_closed, other.channels_closed),
            (&mut self.queues_declared, other.queues_declared),
            (&mut self.queues_created, other.queues_created),
            (&mut self.queues_deleted, other.queues_deleted),
        ];
        for (counter, other) in counters {
            *counter += other;
        }
        for (own, other) in self.deliveries.iter_mut().zip(&other.deliveries) {
            own.add(other);
        }
        self.sizes.add(&other.sizes);
    }
}
