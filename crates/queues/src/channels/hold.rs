//! Deliveries that channels have not acknowledged, and how many a channel may have at a time.

use crosstie_amqp::method::BasicQos;

use super::{ChannelTimer, Channels, Delivery, Unacked};
use crate::keys::ConsumerKey;
use crate::{ChannelKey, Deliveries, QueueKey, Time};

impl<H> Channels<H> {
    /// Holds a delivered message until it is acknowledged.
    pub(crate) fn hold(&mut self, key: ChannelKey, tag: u64, delivery: Delivery) {
        let Some(channel) = self.channels.find_mut(key) else {
            return;
        };
        let now = delivery.delivered_at;
        channel.held += 1;
        channel.unacked.push(tag, delivery);
        let is_charged = channel.unacked_bytes == channel.unacked.memory_bytes();
        if let Some(timeout_ms) = self.look_after_ms {
            let due = Time(now.0.saturating_add(timeout_ms));
            // A queue may have a shorter timeout than all had when the timer was set.
            if channel.timer.is_none_or(|timer| due < timer) {
                channel.timer = Some(due);
                self.set_timer(due, ChannelTimer::Unacked(key));
            }
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
    pub(crate) fn settle(
        &mut self,
        key: ChannelKey,
        tag: u64,
        consumer: Option<ConsumerKey>,
        is_acknowledged: bool,
    ) {
        if let Some(channel) = self.channels.find_mut(key) {
            channel.out.acknowledged += u64::from(is_acknowledged);
            if channel.counts(tag, consumer) {
                channel.prefetched = channel.prefetched.saturating_sub(1);
            }
        }
    }

    /// Counts a publication without a route.
    #[cold]
    pub(crate) fn count_unrouted(&mut self, key: ChannelKey, is_returned: bool) {
        if let Some(channel) = self.channels.find_mut(key) {
            channel.unrouted[usize::from(!is_returned)] += 1;
        }
    }

    /// Counts something about a channel.
    pub(crate) fn count(&mut self, key: ChannelKey, count: impl Fn(&mut Deliveries)) {
        if let Some(channel) = self.channels.find_mut(key) {
            count(&mut channel.out);
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

    /// Whether a delivery of a channel is older than its queue allows, or the vhost, if the queue has no timeout:
    /// `timeout_of`. Returns the timeout. `held` is the oldest delivery acknowledged in an open transaction, which does
    /// not count as acknowledged yet. Of very many deliveries only the oldest are looked at.
    pub(crate) fn is_too_old(
        &mut self,
        now: Time,
        key: ChannelKey,
        held: Option<(QueueKey, Time)>,
        timeout_of: impl Fn(QueueKey) -> Option<u64>,
    ) -> Option<u64> {
        let default_ms = self.consumer_timeout_ms;
        let channel = self.channels.find_mut(key).filter(|c| !c.is_closing)?;
        let oldest = channel
            .unacked
            .iter()
            .take(LOOKED_AT_MAX)
            .map(|(_, delivery)| delivery);
        let oldest = oldest.map(|delivery| (delivery.queue, delivery.delivered_at));
        let mut first_due = None;
        for (queue, since) in held.into_iter().chain(oldest) {
            let Some(timeout_ms) = timeout_of(queue).or(default_ms) else {
                continue;
            };
            let due = Time(since.0.saturating_add(timeout_ms));
            if due <= now {
                return Some(timeout_ms);
            }
            first_due = first_due.into_iter().chain([due]).min();
        }
        // Those that were not looked at are looked at later, and so are deliveries that come meanwhile.
        let is_empty = channel.unacked.len() == 0;
        let later = self.look_after_ms.filter(|_| !is_empty);
        let later = later.map(|after_ms| Time(now.0.saturating_add(after_ms)));
        let due = first_due.into_iter().chain(later).min()?;
        channel.timer = Some(due);
        self.set_timer(due, ChannelTimer::Unacked(key));
        None
    }

    /// Notes the timeout of a queue.
    pub(crate) fn note_timeout(&mut self, timeout_ms: Option<u64>) {
        let Some(timeout_ms) = timeout_ms else {
            return;
        };
        let after_ms = timeout_ms.max(LOOK_AFTER_MIN_MS);
        if self.look_after_ms.is_none_or(|before| after_ms < before) {
            self.look_after_ms = Some(after_ms);
            self.is_shortened = true;
        }
    }

    /// Whether a queue has a shorter timeout than all had when this was asked last.
    pub(crate) fn take_shortened(&mut self) -> bool {
        std::mem::take(&mut self.is_shortened)
    }

    /// Has the oldest delivery of the channel at that place looked at in time. Returns the next place.
    pub(crate) fn look_at_age(&mut self, place: usize) -> Option<usize> {
        let found = self.channels.part(place, 1).next();
        if let Some((key, channel)) = found
            && let Some(oldest) = channel.unacked.oldest()
            && let Some(after_ms) = self.look_after_ms
        {
            let due = Time(oldest.delivered_at.0.saturating_add(after_ms));
            if let Some(channel) = self.channels.find_mut(key) {
                channel.timer = Some(due);
            }
            self.set_timer(due, ChannelTimer::Unacked(key));
        }
        (place + 1 < self.channels.places()).then_some(place + 1)
    }
}

/// Deliveries of a channel whose age is checked at a time, at most.
const LOOKED_AT_MAX: usize = 1_000;

/// The shortest time after which a delivery is looked at: a shorter timeout is as long as this. RabbitMQ looks once a
/// minute.
const LOOK_AFTER_MIN_MS: u64 = 1_000;
