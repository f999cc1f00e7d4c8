//! The configuration of a vhost.

use std::sync::Arc;

/// A vhost's name and bounds.
#[derive(Clone, Debug)]
pub struct VhostConfig {
    pub name: Arc<str>,
    pub limits: VhostLimits,
    /// Time after which an unacknowledged delivery closes its channel with 406. `None`: never.
    pub consumer_timeout_ms: Option<u64>,
    /// Maximum steps of one input; the rest is left for [`crate::Vhost::work`].
    pub input_steps_max: u32,
    /// Longest time between two attempts to publish a kept dead letter whose target refuses it.
    pub dead_letter_retry_ms: u64,
    /// Without a store that can be read from: [`Paging::OFF`].
    pub paging: Paging,
    /// Whether its owner keeps streams: [`crate::Journal::streams`].
    pub has_streams: bool,
}

/// When the messages of a queue leave memory for the disk. A queue with priorities has a head in memory for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Paging {
    /// Bytes of the vhost's messages in memory from which on long queues become deep.
    pub memory_bytes: usize,
    /// A queue with no more messages than this, and no more bytes of bodies than `body_bytes`, does not become deep.
    pub messages: usize,
    pub body_bytes: u64,
    /// The same while the memory is crowded ([`crate::Vhost::set_crowded`]). Then the first messages of each queue stay, as
    /// many as these, and one at least.
    pub crowded_messages: usize,
    pub crowded_body_bytes: u64,
    /// Whether the store has a place for messages that a restart forgets. Otherwise only durable queues become deep, and
    /// they store the transient messages that arrive then.
    pub spills: bool,
}

impl Paging {
    /// Everything stays in memory.
    pub const OFF: Self = Self {
        memory_bytes: usize::MAX,
        messages: usize::MAX,
        body_bytes: u64::MAX,
        crowded_messages: usize::MAX,
        crowded_body_bytes: u64::MAX,
        spills: false,
    };
}

/// Bounds of a vhost. A request beyond a bound closes its channel with 406; existing entities stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VhostLimits {
    pub queues_max: usize,
    /// Exclusive queues of one connection.
    pub connection_queues_max: usize,
    pub exchanges_max: usize,
    pub bindings_max: usize,
    /// Bytes of the names, keys and arguments of all queues, exchanges and bindings together.
    pub definition_bytes_max: usize,
    /// Maximum nodes of patterns, words and fields, that a message visits in the worst case: in one exchange, and in
    /// all exchanges with incoming bindings together.
    pub exchange_steps_max: usize,
    /// Words of topic exchanges' patterns with wildcards, and fields of headers exchanges'.
    pub pattern_nodes_max: usize,
    /// Messages in the history of one exchange (`x-recent-history`): a new binding gets them in one turn.
    pub history_messages_max: usize,
    /// Bytes of the messages in the histories of all exchanges.
    pub history_bytes_max: usize,
    /// Of one channel.
    pub consumers_max: usize,
    /// Of all channels of one connection.
    pub connection_consumers_max: usize,
    /// Of one connection; its `channel-max` is at most this.
    pub channels_max: usize,
    /// Publications and acknowledgements of one transaction: a commit is one turn.
    pub transaction_messages_max: usize,
    /// Bytes of what a connection's channels have published and not committed.
    pub transaction_bytes_max: usize,
    /// Routing keys in the headers `CC` and `BCC` of one message.
    pub copy_keys_max: usize,
    /// A message's body; RabbitMQ's `max_message_size`.
    pub message_bytes_max: usize,
}

impl VhostConfig {
    /// With the defaults.
    pub fn named(name: &str) -> Self {
        Self {
            name: name.into(),
            limits: VhostLimits::default(),
            consumer_timeout_ms: Some(CONSUMER_TIMEOUT_MS),
            input_steps_max: INPUT_STEPS_MAX,
            dead_letter_retry_ms: DEAD_LETTER_RETRY_MS,
            paging: Paging::OFF,
            has_streams: false,
        }
    }
}

/// Ordinary inputs finish within this bound, before their answer is sent. A tenth of a millisecond does not delay other
/// inputs noticeably.
const INPUT_STEPS_MAX: u32 = 1_024;

/// RabbitMQ waits for three minutes; an attempt costs a few microseconds.
const DEAD_LETTER_RETRY_MS: u64 = 1_000;

/// Half an hour, as in RabbitMQ.
const CONSUMER_TIMEOUT_MS: u64 = 1_800_000;

impl Default for VhostLimits {
    fn default() -> Self {
        Self {
            queues_max: 100_000,
            connection_queues_max: 10_000,
            exchanges_max: 100_000,
            bindings_max: 1_000_000,
            // A million bindings with keys of 64 bytes; RabbitMQ's users have a few thousand.
            definition_bytes_max: 64 << 20,
            // Below a millisecond, even if each node has to be fetched from memory.
            exchange_steps_max: 10_000,
            // About 130 bytes each.
            pattern_nodes_max: 1_000_000,
            history_messages_max: 1_000,
            history_bytes_max: 64 << 20,
            consumers_max: 10_000,
            connection_consumers_max: 100_000,
            channels_max: 2_047,
            transaction_messages_max: 10_000,
            transaction_bytes_max: 128 << 20,
            copy_keys_max: 128,
            message_bytes_max: 128 << 20,
        }
    }
}
