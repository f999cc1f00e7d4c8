//! The listings that operators see.

use std::sync::Arc;

use crosstie_amqp::TableBuf;

use crate::Destination;

/// A part of a listing.
#[derive(Clone, Debug, PartialEq)]
pub struct Part<T> {
    pub items: Vec<T>,
    /// Where the next part begins; `None`: this was the last.
    pub next: Option<usize>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct QueueStatus {
    pub name: Arc<str>,
    /// `classic` or `quorum`.
    pub kind: &'static str,
    pub durable: bool,
    pub exclusive: bool,
    pub auto_delete: bool,
    pub arguments: TableBuf,
    pub messages_ready: usize,
    pub messages_unacknowledged: usize,
    /// Of all its messages; one that several queues hold is counted in each.
    pub message_bytes: usize,
    pub consumers: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ExchangeStatus {
    pub name: Arc<str>,
    /// `direct`, `fanout`, `topic`, `headers`.
    pub kind: Arc<str>,
    pub durable: bool,
    pub auto_delete: bool,
    pub internal: bool,
    pub arguments: TableBuf,
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
    pub messages_unacknowledged: usize,
    /// Whether it is not waiting behind a single active consumer.
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
}

/// How many there are, and how many there were.
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
    /// Of messages that were published and not committed.
    pub uncommitted_bytes: usize,
    /// Of the names, keys and arguments of queues, exchanges and bindings.
    pub definition_bytes: usize,
    /// Words and fields of the patterns that bindings have.
    pub pattern_nodes: usize,
    /// Dead letters that have not gone where they are to go yet.
    pub dead_letters_waiting: usize,
    /// Since the start, from here on.
    pub published: u64,
    pub delivered: u64,
    pub acknowledged: u64,
    pub redelivered: u64,
    pub confirmed: u64,
    pub returned: u64,
    pub unroutable: u64,
    pub expired: u64,
    /// By a bound of their queue, or rejected, and nowhere to go.
    pub dropped: u64,
    pub dead_lettered: u64,
    /// Of those that were dropped: dead letters that followed from one message beside too many others.
    pub dead_letters_cut: u64,
    /// Transactions.
    pub committed: u64,
    pub rolled_back: u64,
}
