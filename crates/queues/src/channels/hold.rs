//! Deliveries that channels have not acknowledged, and how many a channel may have at a time.

use crosstie_amqp::method::BasicQos;

use super::{ChannelTimer, Channels, Delivery, Unacked};
use crate::keys::ConsumerKey;
use crate::{ChannelKey, Time};

impl<H> Channels<H> {
    /// Holds a delivered message until it is acknowledged.
    pub(crate) fn hold(&mut self, key: ChannelKey, tag: u64, delivery: Delivery) {
        let Some(channel) = self.channels.find_mut(key) else {
            return;
        };
        let now = delivery.delivered_at;
        channel.unacked.push(tag, delivery);
        let is_charged = channel.unacked_bytes == channel.unacked.memory_bytes();
        if let Some(timeout_ms) = self.consumer_timeout_ms
            && !channel.has_timer
        {
            channel.has_timer = true;
            let due = Time(now.0.saturating_add(timeout_ms));
            self.set_timer(due, ChannelTimer::Unacked(key));
        }
        if !is_charged {
            self.charge_unacked(key);
        }
    }

    /// Takes the delivery with that tag; the caller settles it.
    #[inline]
    pub(crate) fn take(&mut self, key: ChannelKey, tag: u64) -> Option<Delivery> {
        self.channels.find_mut(key)?.unacked.take(tag)
    }

    /// Takes the oldest delivery, if its tag is not above `tag`; the caller settles it.
    pub(crate) fn take_up_to(&mut self, key: ChannelKey, tag: u64) -> Option<(u64, Delivery)> {
        self.channels.find_mut(key)?.unacked.take_up_to(tag)
    }

    /// Takes all deliveries up to that tag; the caller settles them.
    pub(crate) fn split_up_to(&mut self, key: ChannelKey, tag: u64) -> Unacked {
        let Some(channel) = self.channels.find_mut(key) else {
            return Unacked::default();
        };
        let deliveries = channel.unacked.split_up_to(tag);
        self.check_charge(key);
        deliveries
    }

    /// Restores deliveries whose acknowledgement in a transaction was rolled back.
    pub(crate) fn put_back(&mut self, key: ChannelKey, deliveries: Vec<(u64, Delivery)>) {
        if let Some(channel) = self.channels.find_mut(key) {
            channel.unacked.put_back(deliveries);
            self.check_charge(key);
        }
    }

    /// Removes a delivery from the channel's limits.
    #[inline(always)]
    pub(crate) fn settle(&mut self, key: ChannelKey, tag: u64, consumer: Option<ConsumerKey>) {
        if let Some(channel) = self.channels.find_mut(key)
            && channel.counts(tag, consumer)
        {
            channel.prefetched = channel.prefetched.saturating_sub(1);
        }
    }

    /// `basic.qos`, as in RabbitMQ. `global` limits the channel's consumers together, including earlier messages of
    /// `basic.get`; `held` is the number that an open transaction acknowledges. Otherwise it limits each later
    /// consumer, and the channel has no limit any more.
    pub(crate) fn limit(&mut self, key: ChannelKey, method: &BasicQos, held: usize) {
        let Some(channel) = self.channels.find_mut(key) else {
            return;
        };
        let before = channel.prefetch_count_global;
        match method.global {
            true => channel.prefetch_count_global = method.prefetch_count,
            false => {
                channel.prefetch_count = method.prefetch_count;
                channel.prefetch_count_global = 0;
            }
        }
        if before == 0 && channel.prefetch_count_global != 0 {
            channel.prefetched = channel.unacked.len() + held;
            channel.limited_at = channel.last_tag;
        }
    }

    /// Whether the oldest delivery of a channel is older than the consumer timeout. `held_since` is the time of the
    /// oldest delivery acknowledged in an open transaction, which does not count as acknowledged yet.
    pub(crate) fn is_too_old(
        &mut self,
        now: Time,
        key: ChannelKey,
        held_since: Option<Time>,
    ) -> Option<u64> {
        let timeout_ms = self.consumer_timeout_ms?;
        let channel = self.channels.find_mut(key).filter(|c| !c.is_closing)?;
        channel.has_timer = false;
        let unacked_since = channel.unacked.oldest().map(|oldest| oldest.delivered_at);
        let since = unacked_since.into_iter().chain(held_since).min()?;
        let due = Time(since.0.saturating_add(timeout_ms));
        if due <= now {
            return Some(timeout_ms);
        }
        channel.has_timer = true;
        self.set_timer(due, ChannelTimer::Unacked(key));
        None
    }
}
