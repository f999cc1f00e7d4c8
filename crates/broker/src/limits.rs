//! Reads the bounds of a vhost from the configuration.

use std::sync::Arc;

use crosstie_config as model;
use crosstie_queues::{Paging, VhostConfig, VhostLimits};

/// Bytes of messages in memory from which on long queues become deep, unless a sixteenth of the maximum is less.
const DEEP_BYTES: usize = 64 << 20;

/// A queue with fewer messages, and less of their bodies, does not become deep.
pub const SHALLOW_MESSAGES: usize = 1_000;
const SHALLOW_BYTES: u64 = 1 << 20;

/// The same while the memory of all vhosts is crowded: many such queues take little.
const CROWDED_MESSAGES: usize = 16;
const CROWDED_BYTES: u64 = 16 << 10;

/// When messages of a vhost with a store of its own leave memory.
pub fn paging(limits: &model::AmqpLimits) -> Paging {
    Paging {
        memory_bytes: DEEP_BYTES.min(limits.memory_bytes_max / 16),
        messages: SHALLOW_MESSAGES,
        body_bytes: SHALLOW_BYTES,
        crowded_messages: CROWDED_MESSAGES,
        crowded_body_bytes: CROWDED_BYTES,
        spills: true,
    }
}

/// The same for a vhost whose messages are in a log.
pub fn replicated_paging(limits: &model::AmqpLimits) -> Paging {
    Paging {
        spills: false,
        ..paging(limits)
    }
}

pub fn vhost_config(name: &Arc<str>, limits: &model::AmqpLimits) -> VhostConfig {
    let timeout = limits.consumer_timeout.map(|timeout| timeout.as_millis());
    VhostConfig {
        name: Arc::clone(name),
        limits: VhostLimits {
            queues_max: limits.queues_max,
            connection_queues_max: limits.connection_queues_max,
            exchanges_max: limits.exchanges_max,
            bindings_max: limits.bindings_max,
            definition_bytes_max: limits.definition_bytes_max,
            exchange_steps_max: limits.exchange_steps_max,
            pattern_nodes_max: limits.pattern_nodes_max,
            history_messages_max: limits.history_messages_max,
            history_bytes_max: limits.history_bytes_max,
            consumers_max: limits.consumers_max,
            connection_consumers_max: limits.connection_consumers_max,
            copy_keys_max: limits.copy_keys_max,
            transaction_messages_max: limits.transaction_messages_max,
            transaction_bytes_max: limits.transaction_bytes_max,
            channels_max: usize::from(u16::MAX),
            message_bytes_max: limits.message_bytes_max,
        },
        consumer_timeout_ms: timeout.map(|ms| u64::try_from(ms).unwrap_or(u64::MAX)),
        ..VhostConfig::named(name)
    }
}
