//! What becomes of a delivery: acknowledged, refused, given back. And `basic.get`.

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
use crate::unacked::{Delivery, Unacked};
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
                self.steps.spend(1);
                self.settle(key, ack.delivery_tag, &delivery);
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
        while !self.steps.is_over() {
            let Some(delivery) = self.take_up_to(key, up_to) else {
                self.serve(now, key, out);
                return Ok(());
            };
            self.steps.spend(1);
            self.counts.acknowledged += 1;
            self.forget(delivery.queue, delivery.entry);
        }
        let rest = self.split_up_to(key, up_to);
        self.settle_all(now, key, rest, Verdict::Done, out);
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
            return self.turn_down::<BasicNack>(now, key, nack.delivery_tag, verdict, out);
        }
        let up_to = self.check_multiple::<BasicNack>(key, nack.delivery_tag)?;
        if self.hold_up_to::<BasicNack>(key, up_to, verdict)? {
            return Ok(());
        }
        let deliveries = self.split_up_to(key, up_to);
        self.settle_all(now, key, deliveries, verdict, out);
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
        self.turn_down::<BasicReject>(now, key, reject.delivery_tag, verdict, out)
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
        let deliveries = self.split_up_to(context.channel, ALL);
        self.settle_all(now, context.channel, deliveries, Verdict::GivenBack, out);
        Ok(())
    }

    pub(super) fn handle_get(
        &mut self,
        now: Time,
        context: &Context,
        method: &BasicGet<'_>,
        out: &mut dyn Outbox<H>,
    ) -> Result<(), Fault> {
        let name = self.queue_name(context, method.queue, out)?;
        let resource = Resource::queue(&name, &self.config.name);
        context.caller().check(Access::Read, resource)?;
        let key = self.find_queue(context, &name)?;
        self.touch(now, key);
        self.drop_expired(now, key);
        let Some(queue) = self.queues.find_mut(key) else {
            return Ok(());
        };
        let is_quorum = queue.is_quorum();
        // While many expire there may be others behind them.
        let first = queue
            .messages
            .front()
            .filter(|first| !first.is_expired(now));
        let Some(entry) = first.is_some().then(|| queue.pop()).flatten() else {
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

    /// A refused delivery: back to its queue, or where dead letters go.
    fn turn_down<M: Arguments>(
        &mut self,
        now: Time,
        key: ChannelKey,
        tag: u64,
        verdict: Verdict,
        out: &mut dyn Outbox<H>,
    ) -> Result<(), Fault> {
        let Some(delivery) = self.take_one::<M>(key, tag, verdict)? else {
            return Ok(());
        };
        if self.is_settling(key) {
            // Behind what it has refused before.
            let mut one = Unacked::default();
            one.push(tag, delivery);
            self.settle_all(now, key, one, verdict, out);
            return Ok(());
        }
        self.settle(key, tag, &delivery);
        match verdict {
            Verdict::GivenBack => self.requeue(now, [delivery], out),
            _ => self.die(delivery.queue, delivery.entry, Reason::Rejected),
        }
        self.serve(now, key, out);
        Ok(())
    }

    /// Counts that a message came back; none if it may not go out again.
    pub(super) fn return_entry(&mut self, key: QueueKey, mut entry: Entry) -> Option<Entry> {
        let Some(queue) = self.queues.find(key) else {
            self.release(&entry);
            return None;
        };
        self.counts.redelivered += 1;
        entry.is_redelivered = true;
        if !queue.is_quorum() {
            return Some(entry);
        }
        entry.deliveries = entry.deliveries.saturating_add(1);
        let limit = queue.settings.delivery_limit;
        let id = queue.id.filter(|_| entry.is_stored);
        if limit.is_some_and(|limit| u64::from(entry.deliveries) > limit) {
            self.die(key, entry, Reason::DeliveryLimit);
            return None;
        }
        if let Some(queue) = id {
            let (place, deliveries) = (entry.place, entry.deliveries);
            self.record(Record::Returned {
                queue,
                place,
                deliveries,
            });
        }
        Some(entry)
    }

    /// The delivery of that tag, which has to be settled; in a transaction it waits there for its
    /// commit.
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
        let delivery = channel.unacked.take(tag);
        delivery.map(Some).ok_or_else(|| unknown::<M>(tag))
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

    /// All up to that tag, which have to be settled.
    pub(super) fn split_up_to(&mut self, key: ChannelKey, tag: u64) -> Unacked {
        let Some(channel) = self.channels.find_mut(key) else {
            return Unacked::default();
        };
        let deliveries = channel.unacked.split_up_to(tag);
        self.check_charge(key);
        deliveries
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
