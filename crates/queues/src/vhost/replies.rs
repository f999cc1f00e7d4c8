//! Direct reply-to: `amq.rabbitmq.reply-to` is a pseudo-queue. A client that consumes it gets an address in its
//! requests' `reply-to`. A message published to that address is sent straight to its channel.

use std::sync::Arc;

use crosstie_amqp::method::{BasicConsume, BasicConsumeOk, BasicDeliver};

use super::Vhost;
use super::methods::Context;
use crate::channels::{Outgoing, ReplyConsumer};
use crate::topology::Resource;
use crate::{ChannelKey, Fault, Outbox, Refused};

pub(super) const REPLY_QUEUE: &str = "amq.rabbitmq.reply-to";

/// The outcome of a message without queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Replied {
    /// It was sent to the channel that waits for it.
    Sent,
    /// No channel has that address any more.
    ToNobody,
    /// The channel could not be sent it.
    Lost,
}

impl<H> Vhost<H> {
    /// Returns whether it was about a reply consumer.
    pub(super) fn handle_reply_consume(
        &mut self,
        context: &Context,
        method: &BasicConsume<'_>,
        out: &mut dyn Outbox<H>,
    ) -> Result<bool, Fault> {
        if method.queue != REPLY_QUEUE {
            return Ok(false);
        }
        let caller = context.caller();
        let Some(channel) = self.channels.find(context.channel) else {
            return Ok(true);
        };
        if channel.reply_consumer.is_some() {
            return Err(caller.precondition_failed("reply consumer already set"));
        }
        if !method.no_ack {
            return Err(caller.precondition_failed("reply consumer cannot acknowledge"));
        }
        self.check_tag_is_free(context, method.consumer_tag)?;
        let tag: Arc<str> = match method.consumer_tag {
            "" => self.random.name("amq.ctag-"),
            tag => tag.into(),
        };
        // The channel's number, to find it, and a part that cannot be guessed, since knowing an address suffices to
        // send there.
        let number = context.channel.number();
        let address = self.random.name(&format!("{REPLY_QUEUE}.{number:x}."));
        let consumer = ReplyConsumer {
            tag: tag.clone(),
            address,
        };
        self.channels.set_reply_consumer(context.channel, consumer);
        let ok = BasicConsumeOk { consumer_tag: &tag };
        self.answer(context.channel, method.no_wait, ok, out)?;
        Ok(true)
    }

    /// Whether that name is a reply address, and if so whether its channel still consumes it.
    pub(super) fn find_reply_queue(
        &self,
        context: &Context,
        name: &str,
    ) -> Option<Result<(), Fault>> {
        let address = name.strip_prefix(REPLY_QUEUE)?;
        if address.is_empty() || self.reply_channel(name).is_some() {
            return Some(Ok(()));
        }
        let resource = Resource::queue(name, &self.config.name);
        Some(Err(context.caller().not_found(resource)))
    }

    /// Sends a message that was published to a reply address.
    pub(super) fn reply(&mut self, outgoing: &Outgoing<'_>, out: &mut dyn Outbox<H>) -> Replied {
        if !outgoing.exchange.is_empty() || !outgoing.routing_key.starts_with(REPLY_QUEUE) {
            return Replied::ToNobody;
        }
        let Some(key) = self.reply_channel(outgoing.routing_key) else {
            return Replied::ToNobody;
        };
        let Some(channel) = self.channels.find(key) else {
            return Replied::ToNobody;
        };
        let Some(consumer) = &channel.reply_consumer else {
            return Replied::ToNobody;
        };
        let method = BasicDeliver {
            consumer_tag: &consumer.tag,
            // It needs no acknowledgement, and uses up no tag.
            delivery_tag: channel.last_tag + 1,
            redelivered: false,
            exchange: outgoing.exchange,
            routing_key: outgoing.routing_key,
        };
        match self.channels.send_owed(key, method, outgoing, out) {
            Ok(()) => {
                self.ledger.counts.delivered += 1;
                Replied::Sent
            }
            Err(Refused::Gone) => Replied::ToNobody,
            Err(Refused::Full) => {
                self.ledger.counts.dropped += 1;
                Replied::Lost
            }
        }
    }

    fn reply_channel(&self, address: &str) -> Option<ChannelKey> {
        let rest = address.strip_prefix(REPLY_QUEUE)?.strip_prefix('.')?;
        let (number, _) = rest.split_once('.')?;
        let key = ChannelKey::from_number(u64::from_str_radix(number, 16).ok()?);
        let consumer = self.channels.find(key)?.reply_consumer.as_ref()?;
        (*consumer.address == *address).then_some(key)
    }
}
