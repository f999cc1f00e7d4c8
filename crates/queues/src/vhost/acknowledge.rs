//! The end of a delivery: acknowledged, refused or returned.

use crosstie_amqp::method::{BasicAck, BasicNack, BasicRecover, BasicRecoverOk, BasicReject};
use crosstie_amqp::{Arguments, ReplyCode};

use super::Vhost;
use super::methods::Context;
use crate::channels::{Delivery, Unacked};
use crate::transactions::Verdict;
use crate::{ChannelKey, Fault, Outbox, Time};

/// Methods that RabbitMQ names together.
const TURNING_DOWN: &str = "basic.nack and basic.reject";

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
                self.ledger.steps.spend(1);
                self.settle(key, ack.delivery_tag, &delivery, true);
                self.forget(delivery.queue, &delivery.entry);
                self.serve(now, key, out);
            }
            return Ok(());
        }
        let up_to = self.check_multiple::<BasicAck>(key, ack.delivery_tag)?;
        if self.hold_up_to::<BasicAck>(key, up_to, Verdict::Done)? {
            return Ok(());
        }
        while !self.ledger.steps.is_over() {
            let Some((tag, delivery)) = self.channels.take_up_to(key, up_to) else {
                self.serve(now, key, out);
                return Ok(());
            };
            self.settle(key, tag, &delivery, true);
            self.ledger.steps.spend(1);
            self.forget(delivery.queue, &delivery.entry);
        }
        let rest = self.channels.split_up_to(key, up_to);
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
        let deliveries = self.channels.split_up_to(key, up_to);
        self.check_no_stream_in::<BasicNack>(&deliveries, TURNING_DOWN)?;
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
        let deliveries = self.channels.split_up_to(context.channel, ALL);
        // RabbitMQ ends such a connection with an internal error.
        self.check_no_stream_in::<BasicRecover>(&deliveries, "basic.recover")?;
        // The answer first: redeliveries follow it.
        self.answer(context.channel, !is_answered, BasicRecoverOk {}, out)?;
        self.settle_all(now, context.channel, deliveries, Verdict::GivenBack, out);
        Ok(())
    }

    /// Refuses a delivery: it returns to its queue, or becomes a dead letter.
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
        if self.settlements.has(key) {
            // After earlier refusals that are still being processed.
            let mut one = Unacked::default();
            one.push(tag, delivery);
            self.settle_all(now, key, one, verdict, out);
            return Ok(());
        }
        self.settle(key, tag, &delivery, false);
        match verdict {
            Verdict::GivenBack => self.requeue(now, [delivery], out),
            _ => self.reject(delivery),
        }
        self.serve(now, key, out);
        Ok(())
    }

    /// Takes the delivery with that tag, for the caller to settle; in a transaction it waits for the commit.
    fn take_one<M: Arguments>(
        &mut self,
        key: ChannelKey,
        tag: u64,
        verdict: Verdict,
    ) -> Result<Option<Delivery>, Fault> {
        let Some(delivery) = self.channels.take(key, tag) else {
            return match self.channels.find(key) {
                Some(_) => Err(unknown::<M>(tag)),
                None => Ok(None),
            };
        };
        if verdict != Verdict::Done && self.streams.are_any() {
            self.check_no_stream(ids::<M>(), delivery.queue, TURNING_DOWN)?;
        }
        if self.transactions.find(key).is_none() {
            return Ok(Some(delivery));
        }
        self.channels.check_charge(key);
        self.transactions
            .acknowledge::<M>(key, verdict, tag, delivery)?;
        Ok(None)
    }

    /// The same for all deliveries up to that one. Returns whether the channel is transactional.
    fn hold_up_to<M: Arguments>(
        &mut self,
        key: ChannelKey,
        up_to: u64,
        verdict: Verdict,
    ) -> Result<bool, Fault> {
        if self.transactions.find(key).is_none() {
            return Ok(false);
        }
        while let Some((tag, delivery)) = self.channels.take_up_to(key, up_to) {
            if verdict != Verdict::Done {
                self.check_no_stream(ids::<M>(), delivery.queue, TURNING_DOWN)?;
            }
            self.transactions
                .acknowledge::<M>(key, verdict, tag, delivery)?;
        }
        self.channels.check_charge(key);
        Ok(true)
    }

    /// The tag up to which an answer applies. 0 means all, even if there are none (AMQP 0-9-1, basic.ack,
    /// `delivery-tag`).
    fn check_multiple<M: Arguments>(&self, key: ChannelKey, tag: u64) -> Result<u64, Fault> {
        match self.channels.find(key) {
            Some(channel) if tag != 0 && !channel.unacked.contains(tag) => Err(unknown::<M>(tag)),
            _ if tag == 0 => Ok(ALL),
            _ => Ok(tag),
        }
    }

    /// Checks that no delivery is of a stream, which takes nothing back.
    fn check_no_stream_in<M: Arguments>(
        &self,
        deliveries: &Unacked,
        what: &str,
    ) -> Result<(), Fault> {
        if !self.streams.are_any() {
            return Ok(());
        }
        for (_, delivery) in deliveries.iter() {
            self.check_no_stream(ids::<M>(), delivery.queue, what)?;
        }
        Ok(())
    }

    /// Removes a delivery from all limits. Its consumer may have room again: [`Self::serve`] then sends it ready
    /// messages.
    // One of its callers handles nearly every acknowledgement.
    #[inline(always)]
    pub(super) fn settle(
        &mut self,
        key: ChannelKey,
        tag: u64,
        delivery: &Delivery,
        is_acknowledged: bool,
    ) {
        self.queues
            .settle_one(delivery.queue, is_acknowledged, &mut self.ledger);
        self.channels
            .settle(key, tag, delivery.consumer, is_acknowledged);
        if let Some(consumer) = delivery.consumer {
            self.consumers.settle(consumer, delivery.queue);
        }
    }
}

fn ids<M: Arguments>() -> (u16, u16) {
    (M::CLASS_ID, M::METHOD_ID)
}

fn unknown<M: Arguments>(tag: u64) -> Fault {
    Fault::of::<M>(
        ReplyCode::PreconditionFailed,
        format!("unknown delivery tag {tag}"),
    )
}
