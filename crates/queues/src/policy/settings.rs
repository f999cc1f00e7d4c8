//! The settings that a definition has: the keys that have an effect, by their types.

use std::sync::Arc;

use super::{Definition, PolicyValue};
use crate::topology::Overflow;

/// What policies set. Absent keys set nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PolicySettings {
    pub(crate) expires_ms: Option<u64>,
    pub(crate) message_ttl_ms: Option<u64>,
    pub(crate) length_max: Option<u64>,
    pub(crate) bytes_max: Option<u64>,
    pub(crate) overflow: Option<Overflow>,
    pub(crate) dead_letter_exchange: Option<Arc<str>>,
    pub(crate) dead_letter_routing_key: Option<Arc<str>>,
    pub(crate) is_at_least_once: Option<bool>,
    pub(crate) delivery_limit: Option<u64>,
    pub(crate) consumer_timeout_ms: Option<u64>,
    pub(crate) age_max_ms: Option<u64>,
    pub(crate) segment_bytes_max: Option<u64>,
    pub(crate) alternate_exchange: Option<Arc<str>>,
}

impl PolicySettings {
    pub(super) fn of(definition: &Definition) -> Self {
        let find = |key: &str| {
            let found = definition.binary_search_by_key(&key, |(name, _)| name);
            found.ok().map(|found| &definition[found].1)
        };
        let text = |key| find(key).and_then(PolicyValue::as_text);
        let shared = |key| text(key).map(Arc::<str>::from);
        // A number that 64 bits do not hold is as good as none.
        let number = |key| {
            let number = find(key).and_then(PolicyValue::as_integer);
            number.map(|number| u64::try_from(number).unwrap_or(u64::MAX))
        };
        Self {
            expires_ms: number("expires"),
            message_ttl_ms: number("message-ttl"),
            length_max: number("max-length"),
            bytes_max: number("max-length-bytes"),
            overflow: text("overflow").and_then(Overflow::find),
            dead_letter_exchange: shared("dead-letter-exchange"),
            dead_letter_routing_key: shared("dead-letter-routing-key"),
            is_at_least_once: text("dead-letter-strategy").map(|text| text == "at-least-once"),
            delivery_limit: number("delivery-limit"),
            consumer_timeout_ms: number("consumer-timeout"),
            age_max_ms: text("max-age").and_then(crate::topology::age_ms),
            // RabbitMQ accepts 0, and such a stream confirms nothing.
            segment_bytes_max: number("stream-max-segment-size-bytes").filter(|max| *max > 0),
            alternate_exchange: shared("alternate-exchange"),
        }
    }
}
