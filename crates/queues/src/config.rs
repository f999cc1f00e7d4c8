//! How a vhost is set up.

use std::sync::Arc;

/// A vhost's name and bounds.
#[derive(Clone, Debug)]
pub struct VhostConfig {
    pub name: Arc<str>,
    pub limits: VhostLimits,
    /// A delivery that is not acknowledged for so long closes its channel with 406. `None`: never.
    pub consumer_timeout_ms: Option<u64>,
    /// The steps that one input takes at once; the rest is left for [`crate::Vhost::work`].
    pub input_steps_max: u32,
}

/// How much there may be. A client that asks for more has the channel closed with 406, and keeps what it
/// had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VhostLimits {
    pub queues_max: usize,
    /// Exclusive ones of one connection.
    pub connection_queues_max: usize,
    pub exchanges_max: usize,
    pub bindings_max: usize,
    /// Bytes of the names, keys and arguments of all queues, exchanges and bindings together.
    pub definition_bytes_max: usize,
    /// Nodes of patterns, words and fields, that a message may meet at worst: in one exchange, and
    /// in all those together that others lead to.
    pub exchange_steps_max: usize,
    /// Words of topic exchanges' patterns with wildcards, and fields of headers exchanges'.
    pub pattern_nodes_max: usize,
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
        }
    }
}

/// The work of an ordinary input is done when its answer leaves; a tenth of a millisecond is nothing
/// that others would notice.
const INPUT_STEPS_MAX: u32 = 1_024;

/// Half an hour, as RabbitMQ has it.
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
            // Below a millisecond, even where each node has to be fetched from memory.
            exchange_steps_max: 10_000,
            // Some 130 bytes each.
            pattern_nodes_max: 1_000_000,
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
