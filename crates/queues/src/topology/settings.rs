//! The settings of a queue: its arguments, merged with its policies.

use std::sync::Arc;

use crosstie_amqp::Table;

use super::arguments::{DEAD_LETTER_STRATEGY, OVERFLOW, QueueArguments};
use super::kind::QueueKind;
use super::overflow::Overflow;
use crate::policy::{Applied, PolicySettings};

impl QueueArguments {
    /// The settings of a queue with these arguments under its policies: of two bounds the smaller one, otherwise the
    /// argument, key by key.
    pub(crate) fn under(mut self, arguments: Table<'_>, policies: Option<&Applied>) -> Self {
        if let Some(policies) = policies {
            self.add(arguments, policies.settings());
        }
        // RabbitMQ accepts it for a quorum queue, which drops its head all the same.
        if self.kind == QueueKind::Quorum && self.overflow == Overflow::RejectPublishDeadLetter {
            self.overflow = Overflow::DropHead;
        }
        // Otherwise RabbitMQ falls back to at most once, too.
        self.is_at_least_once &=
            self.dead_letter_exchange.is_some() && self.overflow == Overflow::RejectPublish;
        self
    }

    fn add(&mut self, arguments: Table<'_>, set: &PolicySettings) {
        let smaller = |own: Option<u64>, set: Option<u64>| own.into_iter().chain(set).min();
        self.expires_ms = smaller(self.expires_ms, set.expires_ms);
        self.message_ttl_ms = smaller(self.message_ttl_ms, set.message_ttl_ms);
        self.length_max = smaller(self.length_max, set.length_max);
        self.bytes_max = smaller(self.bytes_max, set.bytes_max);
        self.delivery_limit = smaller(self.delivery_limit, set.delivery_limit);
        self.consumer_timeout_ms = smaller(self.consumer_timeout_ms, set.consumer_timeout_ms);
        if let Some(overflow) = set.overflow
            && arguments.find(OVERFLOW).is_none()
        {
            self.overflow = overflow;
        }
        if let Some(is_so) = set.is_at_least_once
            && arguments.find(DEAD_LETTER_STRATEGY).is_none()
        {
            self.is_at_least_once = is_so;
        }
        let or = |own: &mut Option<Arc<str>>, set: &Option<Arc<str>>| {
            if own.is_none() {
                own.clone_from(set);
            }
        };
        or(&mut self.dead_letter_exchange, &set.dead_letter_exchange);
        or(
            &mut self.dead_letter_routing_key,
            &set.dead_letter_routing_key,
        );
        self.age_max_ms = self.age_max_ms.or(set.age_max_ms);
        self.segment_bytes_max = self.segment_bytes_max.or(set.segment_bytes_max);
    }
}
