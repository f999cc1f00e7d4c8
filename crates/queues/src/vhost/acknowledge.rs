//! What becomes of a delivery: acknowledged, refused, given back. And `basic.get`.

use std::collections::BTreeMap;

use crosstie_amqp::ReplyCode;
use crosstie_amqp::method::{
    BasicAck, BasicGet, BasicGetEmpty, BasicGetOk, BasicNack, BasicRecoverOk, BasicReject,
};
use crosstie_amqp::{Arguments, Method};
use crosstie_auth::Access;

use super::Vhost;
use super::dead_letters::Reason;
use super::deliver::{Sending, with_delivery_count};
use super::methods::Context;
use crate::channel::Turn;
use crate::queue::Entry;
use crate::topology::Resource;
use crate::transaction::Verdict;
use crate::unacked::Delivery;
use crate::{ChannelKey, Fault, Outbox, QueueKey, Record, Time};

/// Stands for every tag there is.
const ALL: u64 = u64::MAX;

impl<H> Vhost<H> {
    pub(super) fn handle_ack(
        &mut self,
        now: Time,
        key: ChannelKey,
        ack: &BasicAck,
        out: &mut dyn Outbox<H>,
    ) -> Result<(), Fault> {
        if !ack.multiple {
            let delivery = self.take_one::<BasicAck>(key, ack.delivery_tag, Verdict::Done)?;
            if let Some(delivery) = delivery {
                self.counts.acknowledged += 1;
                self.forget(delivery.queue, delivery.entry);
                self.serve(now, key, out);
            }
            return Ok(());
        }
        let up_to = self.check_multiple::<BasicAck>(key, ack.delivery_tag)?;
        if self.hold_up_to::<BasicAck>(key, up_to, Verdict::Done)? {
            return Ok(());
        }
        while let Some(delivery) = self.take_up_to(key, up_to) {
            self.counts.acknowledged += 1;
            self.forget(delivery.queue, delivery.entry);
        }
        self.serve(now, key, out);
        Ok(())
    }

    pub(super) fn handle_nack(
        &mut self,
        now: Time,
        key: ChannelKey,
        nack: &BasicNack,
        out: &mut dyn Outbox<H>,
    ) -> Result<(), Fault> {
        let verdict = Verdict::turned_down(nack.requeue);
        if !nack.multiple {
            let delivery = self.take_one::<BasicNack>(key, nack.delivery_tag, verdict)?;
            self.turn_down(now, key, Vec::from_iter(delivery), nack.requeue, out);
            return Ok(());
        }
        let up_to = self.check_multiple::<BasicNack>(key, nack.delivery_tag)?;
        if self.hold_up_to::<BasicNack>(key, up_to, verdict)? {
            return Ok(());
        }
        let mut deliveries = Vec::new();
        while let Some(delivery) = self.take_up_to(key, up_to) {
            deliveries.push(delivery);
        }
        self.turn_down(now, key, deliveries, nack.requeue, out);
        Ok(())
    }

    pub(super) fn handle_reject(
        &mut self,
        now: Time,
        key: ChannelKey,
        reject: &BasicReject,
        out: &mut dyn Outbox<H>,
    ) -> Result<(), Fault> {
        let verdict = Verdict::turned_down(reject.requeue);
        let delivery = self.take_one::<BasicReject>(key, reject.delivery_tag, verdict)?;
        self.turn_down(now, key, Vec::from_iter(delivery), reject.requeue, out);
        Ok(())
    }

    pub(super) fn handle_recover(
        &mut self,
        now: Time,
        context: &Context,
        requeue: bool,
        is_answered: bool,
        out: &mut dyn Outbox<H>,
    ) -> Result<(), Fault> {
        if !requeue {
            let text = "requeue=false";
            return Err(context.caller().fault(ReplyCode::NotImplemented, text));
        }
        // The answer first: what is delivered again comes behind it.
        self.answer(context.channel, !is_answered, BasicRecoverOk {}, out)?;
        self.requeue_everything(now, &[context.channel], out);
        self.serve(now, context.channel, out);
        Ok(())
    }

    /// All that channels have not acknowledged goes back to where it was.
    pub(super) fn requeue_everything(
        &mut self,
        now: Time,
        channels: &[ChannelKey],
        out: &mut dyn Outbox<H>,
    ) {
        let mut deliveries = Vec::new();
        for channel in channels {
            while let Some(delivery) = self.take_up_to(*channel, ALL) {
                deliveries.push(delivery);
            }
        }
        self.requeue(now, deliveries, out);
    }

    pub(super) fn handle_get(
        &mut self,
        now: Time,
        context: &Context,
        method: &BasicGet<'_>,
        out: &mut dyn Outbox<H>,
    ) -> Result<(), Fault> {
        let name = self.queue_name(context, method.queue)?;
        let resource = Resource::queue(&name, &self.config.name);
        context.caller().check(Access::Read, resource)?;
        let key = self.find_queue(context, &name)?;
        self.touch(now, key);
        self.drop_expired(now, key);
        let Some(queue) = self.queues.find_mut(key) else {
            return Ok(());
        };
        let is_quorum = queue.is_quorum();
        let Some(entry) = queue.pop() else {
            let empty = BasicGetEmpty { cluster_id: "" };
            return self.answer(context.channel, false, empty, out);
        };
        // Those behind it that have expired are not there any more.
        self.drop_expired(now, key);
        let message_count = self.queues.find(key).map_or(0, |q| q.messages.len() as u32);
        let mut counted = Vec::new();
        let mut sending = Sending::of(&entry);
        if is_quorum {
            sending.properties =
                with_delivery_count(sending.properties, entry.deliveries, &mut counted);
        }
        let Some(channel) = self.channels.find_mut(context.channel) else {
            return Ok(());
        };
        let Some(connection) = self.connections.find(channel.connection) else {
            return Ok(());
        };
        let ok = BasicGetOk {
            delivery_tag: channel.last_tag + 1,
            redelivered: sending.is_redelivered,
            exchange: sending.exchange,
            routing_key: sending.routing_key,
            message_count,
        };
        let sent = out.send_owed(
            &connection.handle,
            channel.number,
            &Method::from(ok),
            sending.properties,
            sending.body,
        );
        if sent.is_err() {
            // It asked for a message and will not have it, nor hear that there is none: it is
            // closed. The message stays.
            if let Some(queue) = self.queues.find_mut(key) {
                queue.insert(entry);
            }
            self.set_head_timer(key);
            return Ok(());
        }
        self.counts.delivered += 1;
        let tag = channel.next_tag();
        if method.no_ack {
            self.forget(key, entry);
        } else {
            self.hold_in(now, key, (context.channel, None), tag, entry);
        }
        self.set_head_timer(key);
        Ok(())
    }

    /// Refused deliveries: back to their queues, or where dead letters go.
    fn turn_down(
        &mut self,
        now: Time,
        key: ChannelKey,
        deliveries: Vec<Delivery>,
        requeue: bool,
        out: &mut dyn Outbox<H>,
    ) {
        if requeue {
            self.requeue(now, deliveries, out);
        } else {
            for delivery in deliveries {
                self.die(delivery.queue, delivery.entry, Reason::Rejected);
            }
        }
        self.serve(now, key, out);
    }

    pub(super) fn requeue(
        &mut self,
        now: Time,
        deliveries: Vec<Delivery>,
        out: &mut dyn Outbox<H>,
    ) {
        let mut queues: BTreeMap<QueueKey, Vec<Entry>> = BTreeMap::new();
        for delivery in deliveries {
            let queue = queues.entry(delivery.queue).or_default();
            queue.push(delivery.entry);
        }
        for (key, entries) in queues {
            let entries = self.return_entries(key, entries);
            if let Some(queue) = self.queues.find_mut(key) {
                queue.put_back(entries);
                // First the bounds, then whoever waits: what is beyond them goes to nobody.
                self.drop_overflow(key);
                self.deliver(now, key, out);
            }
        }
    }

    /// Counts that they came back, and keeps those that may go out again.
    fn return_entries(&mut self, key: QueueKey, entries: Vec<Entry>) -> Vec<Entry> {
        let mut kept = Vec::with_capacity(entries.len());
        for mut entry in entries {
            let Some(queue) = self.queues.find(key) else {
                self.release(&entry);
                continue;
            };
            self.counts.redelivered += 1;
            entry.is_redelivered = true;
            if queue.is_quorum() {
                entry.deliveries = entry.deliveries.saturating_add(1);
                let limit = queue.settings.delivery_limit;
                let id = queue.id.filter(|_| entry.is_stored);
                if limit.is_some_and(|limit| u64::from(entry.deliveries) > limit) {
                    self.die(key, entry, Reason::DeliveryLimit);
                    continue;
                }
                if let Some(queue) = id {
                    let (place, deliveries) = (entry.place, entry.deliveries);
                    self.record(Record::Returned {
                        queue,
                        place,
                        deliveries,
                    });
                }
            }
            kept.push(entry);
        }
        kept
    }

    /// The delivery of that tag; in a transaction it waits there for its commit.
    fn take_one<M: Arguments>(
        &mut self,
        key: ChannelKey,
        tag: u64,
        verdict: Verdict,
    ) -> Result<Option<Delivery>, Fault> {
        let Some(channel) = self.channels.find_mut(key) else {
            return Ok(None);
        };
        if channel.transaction.is_some() && channel.unacked.contains(tag) {
            self.hold_one::<M>(key, tag, verdict)?;
            return Ok(None);
        }
        let delivery = channel.unacked.take(tag).ok_or_else(|| unknown::<M>(tag))?;
        self.settle(key, tag, &delivery);
        Ok(Some(delivery))
    }

    /// The tag up to which something is said. 0 is everything, even where there is nothing.
    fn check_multiple<M: Arguments>(&self, key: ChannelKey, tag: u64) -> Result<u64, Fault> {
        match self.channels.find(key) {
            Some(channel) if tag != 0 && !channel.unacked.contains(tag) => Err(unknown::<M>(tag)),
            _ if tag == 0 => Ok(ALL),
            _ => Ok(tag),
        }
    }

    fn take_up_to(&mut self, key: ChannelKey, tag: u64) -> Option<Delivery> {
        let (tag, delivery) = self.channels.find_mut(key)?.unacked.take_up_to(tag)?;
        self.settle(key, tag, &delivery);
        Some(delivery)
    }

    /// A delivery is nobody's any more; it counts against no limit. Its consumer may have room
    /// again: [`Self::serve`] then gives it what is ready.
    // One of its callers is the way of nearly every acknowledgement.
    #[inline(always)]
    pub(super) fn settle(&mut self, key: ChannelKey, tag: u64, delivery: &Delivery) {
        if let Some(queue) = self.queues.find_mut(delivery.queue) {
            queue.unacknowledged = queue.unacknowledged.saturating_sub(1);
        }
        if let Some(channel) = self.channels.find_mut(key)
            && channel.counts(tag, delivery.consumer)
        {
            channel.prefetched = channel.prefetched.saturating_sub(1);
        }
        if let Some(key) = delivery.consumer
            && let Some(consumer) = self.consumers.find_mut(key)
        {
            consumer.unacked = consumer.unacked.saturating_sub(1);
            if consumer.turn == Turn::Blocked && !consumer.is_at_limit() {
                self.unblocked.push(consumer.queue);
                self.line_up(key);
            }
        }
    }
}

fn unknown<M: Arguments>(tag: u64) -> Fault {
    Fault::of::<M>(
        ReplyCode::PreconditionFailed,
        format!("unknown delivery tag {tag}"),
    )
}
