//! The publication of a message.

use std::sync::Arc;

use crosstie_amqp::method::{BasicPublish, BasicReturn};
use crosstie_amqp::{Arguments, Changes, Properties, ReplyCode};
use crosstie_auth::Access;

use super::Vhost;
use super::facets::{Facets, owned, without_blind_copies};
use super::replies::Replied;
use crate::channels::Outgoing;
use crate::queues::{Enqueued, Incoming, RetainedMax};
use crate::topology::{Caller, ExchangeKey, Routed};
use crate::transactions::Publication;
use crate::{ChannelKey, Fault, MessageContent, Outbox, Position, QueueKey, Time};

/// A message that is published.
struct Message<'a> {
    properties: Properties<'a>,
    body: &'a [u8],
    /// The same in the queues' form, if it was assembled in that form.
    content: Option<Arc<MessageContent>>,
    /// The bounds, if it is retained for its routing key.
    retained: Option<RetainedMax>,
}

/// The queues' decisions on a message.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Distributed {
    /// A queue refused it.
    pub(super) is_rejected: bool,
    /// The position at which a store has it in all queues, if it is to be stored.
    position: Option<Position>,
    /// Number of queue entries to be stored.
    stored: u32,
}

impl<H> Vhost<H> {
    /// Handles `basic.publish` with its content. A required confirm is sent by [`Self::flush_confirms`] or later.
    pub fn publish(
        &mut self,
        now: Time,
        channel: ChannelKey,
        publish: &BasicPublish<'_>,
        properties: Properties<'_>,
        body: &[u8],
        out: &mut dyn Outbox<H>,
    ) -> Result<(), Fault> {
        let message = Message {
            properties,
            body,
            content: None,
            retained: None,
        };
        self.publish_message(now, channel, publish, message, out)
    }

    /// The same, and retains the message for its routing key unless a queue rejects it. Without a body, the retained one is
    /// removed. Its confirm waits for the store's record of that, too. Returns whether there was room. Refused until
    /// [`Self::has_read_retained`]: an earlier one would take its place.
    pub fn publish_retained(
        &mut self,
        now: Time,
        channel: ChannelKey,
        publish: &BasicPublish<'_>,
        (properties, body): (Properties<'_>, &[u8]),
        max: RetainedMax,
        out: &mut dyn Outbox<H>,
    ) -> Result<bool, Fault> {
        if !self.queues.has_read_retained() {
            let text = "the retained messages of the vhost are not read yet";
            return Err(Fault::of::<BasicPublish<'_>>(
                ReplyCode::PreconditionFailed,
                text,
            ));
        }
        let message = Message {
            properties,
            body,
            content: None,
            retained: Some(max),
        };
        let refused = self.queues.retained_refused();
        self.publish_message(now, channel, publish, message, out)?;
        Ok(self.queues.retained_refused() == refused)
    }

    /// The message that a routing key retains.
    pub fn retained(&self, now: Time, routing_key: &str) -> Option<&Arc<MessageContent>> {
        self.queues.retained(now, routing_key)
    }

    /// Number of retained messages, and their bytes.
    pub fn retained_counts(&self) -> (usize, usize) {
        self.queues.retained_counts()
    }

    /// Whether the retained messages are in memory. After a restart, many are read page by page.
    pub fn has_read_retained(&self) -> bool {
        self.queues.has_read_retained()
    }

    /// Whether a queue, which is hidden, has the retained messages.
    pub fn has_retained(&self, queue: QueueKey) -> bool {
        self.queues.has_retained(queue)
    }

    /// The same for a message that was assembled before ([`crate::ContentAssembly`]), with its exchange and routing
    /// key: queues keep it as it is.
    pub fn publish_content(
        &mut self,
        now: Time,
        channel: ChannelKey,
        content: &Arc<MessageContent>,
        mandatory: bool,
        immediate: bool,
        out: &mut dyn Outbox<H>,
    ) -> Result<(), Fault> {
        let (exchange, routing_key, properties, body) = content.parts();
        let publish = BasicPublish {
            exchange,
            routing_key,
            mandatory,
            immediate,
        };
        let message = Message {
            properties,
            body,
            content: Some(Arc::clone(content)),
            retained: None,
        };
        self.publish_message(now, channel, &publish, message, out)
    }

    /// Whether a channel's connection may publish there: for what is published later in its name.
    pub fn check_publish(
        &mut self,
        key: ChannelKey,
        exchange: &str,
        routing_key: &str,
    ) -> Result<(), Fault> {
        let Some((_, connection)) = self.channels.both(key) else {
            return Ok(());
        };
        let caller = Caller {
            user: &connection.client.user,
            permissions: &connection.client.permissions,
            method: (BasicPublish::CLASS_ID, BasicPublish::METHOD_ID),
        };
        let exchange = self.topology.exchange_to_publish(&caller, exchange)?;
        self.topology
            .check_topic(&caller, Access::Write, exchange, routing_key)
    }

    fn publish_message(
        &mut self,
        now: Time,
        channel: ChannelKey,
        publish: &BasicPublish<'_>,
        message: Message<'_>,
        out: &mut dyn Outbox<H>,
    ) -> Result<(), Fault> {
        self.begin();
        let result = self.take_message(now, channel, publish, message, out);
        if self.queues.dead().has_died() {
            self.bury_published(now, out);
        }
        if result.is_err() {
            // Nothing may follow the channel's end.
            self.flush_channel(channel, out);
        }
        result
    }

    fn take_message(
        &mut self,
        now: Time,
        key: ChannelKey,
        publish: &BasicPublish<'_>,
        message: Message<'_>,
        out: &mut dyn Outbox<H>,
    ) -> Result<(), Fault> {
        let Some((channel, connection)) = self.channels.both(key) else {
            return Ok(());
        };
        let caller = Caller {
            user: &connection.client.user,
            permissions: &connection.client.permissions,
            method: (BasicPublish::CLASS_ID, BasicPublish::METHOD_ID),
        };
        if publish.immediate {
            return Err(caller.fault(ReplyCode::NotImplemented, "immediate=true"));
        }
        let limits = &self.config.limits;
        if message.body.len() > limits.message_bytes_max {
            return Err(caller.precondition_failed(format!(
                "message size {} is larger than configured max size {}",
                message.body.len(),
                limits.message_bytes_max
            )));
        }
        let exchange = self
            .topology
            .exchange_to_publish(&caller, publish.exchange)?;
        self.topology
            .check_topic(&caller, Access::Write, exchange, publish.routing_key)?;
        let is_impersonator = connection.client.is_impersonator;
        let properties = message.properties;
        let facets = Facets::of(&caller, is_impersonator, properties, limits.copy_keys_max)?;
        if facets.has_copies {
            let routed = Routed {
                routing_key: publish.routing_key,
                headers: facets.headers,
                properties,
            };
            let targets = &mut self.targets;
            self.topology
                .check_copies(&caller, exchange, routed, targets)?;
        }
        let mut rewritten = Vec::new();
        let mut message = message;
        if facets.wants_reply || facets.has_blind_copies {
            let reply = channel.reply_consumer.as_ref();
            let address = reply.map(|reply| &*reply.address);
            rewrite(&caller, &facets, address, properties, &mut rewritten)?;
            message.properties = Properties::from_checked_bytes(&rewritten);
            message.content = None;
        }
        let is_first = channel.count_published();
        self.ledger.count_published(message.body.len(), is_first);
        if let Some(transaction) = self.transactions.find(key) {
            if transaction.is_committing {
                return self.transactions.check_not_committing(key, caller.method);
            }
            let connection = channel.connection;
            let publication = publication(publish, message, &facets);
            return self.transactions.publish(key, connection, publication);
        }
        self.route(now, key, publish, (exchange, &facets), message, out);
        Ok(())
    }

    /// Routes a message, and promises its publisher a confirm.
    #[inline(always)]
    fn route(
        &mut self,
        now: Time,
        key: ChannelKey,
        publish: &BasicPublish<'_>,
        (exchange, facets): (ExchangeKey, &Facets<'_>),
        message: Message<'_>,
        out: &mut dyn Outbox<H>,
    ) {
        let tag = self.confirms.promise(key);
        let mut targets = std::mem::take(&mut self.targets);
        targets.clear();
        let routed = Routed {
            routing_key: publish.routing_key,
            headers: facets.headers,
            properties: message.properties,
        };
        self.topology.route(exchange, routed, &mut targets);
        self.count_routed(exchange, targets.len());
        let mut incoming = Incoming {
            exchange: publish.exchange,
            routing_key: publish.routing_key,
            properties: message.properties,
            body: message.body,
            handling: facets.handling,
            content: message.content,
        };
        if self.tracing.is_some() {
            let traced = (&incoming.outgoing(), facets.headers);
            self.trace_published(key, traced, &targets, out);
        }
        let mut distributed = self.distribute(now, key, publish, &targets, &mut incoming, out);
        self.targets = targets;
        if self.topology.has_passed() {
            let held = self.keep_passed(now, facets.headers, &mut incoming);
            distributed.position = distributed.position.max(held.position);
            distributed.stored += held.stored;
        }
        let retained = message.retained.filter(|_| !distributed.is_rejected);
        let retained =
            retained.and_then(|max| self.retain(now, &mut incoming, max, &mut distributed));
        match tag {
            Some(tag) if distributed.is_rejected => self.refuse(key, tag, out),
            Some(tag) => {
                let content = incoming.content.as_deref();
                let stored = distributed.position.zip(content);
                let stored = stored.map(|(at, content)| (at, distributed.stored, content));
                self.confirms.confirm(key, tag, stored);
                // A removal in place of a message without room is withdrawn with its publication.
                if let Some((content, retained)) = content.zip(retained) {
                    self.confirms.follow(content, &retained, 0);
                }
            }
            None => {}
        }
    }

    /// Returns the content that is retained.
    #[cold]
    fn retain(
        &mut self,
        now: Time,
        incoming: &mut Incoming<'_>,
        max: RetainedMax,
        distributed: &mut Distributed,
    ) -> Option<Arc<MessageContent>> {
        let ledger = &mut self.ledger;
        let (position, content) = self.queues.retain(now, incoming, max, ledger)?;
        distributed.position = distributed.position.max(Some(position));
        distributed.stored += 1;
        Some(content)
    }

    /// Gives a message to its queues. If there are none, it is a direct reply, or returns to its publisher.
    // It has two callers; one handles every message.
    #[inline(always)]
    pub(super) fn distribute(
        &mut self,
        now: Time,
        key: ChannelKey,
        publish: &BasicPublish<'_>,
        targets: &[QueueKey],
        incoming: &mut Incoming<'_>,
        out: &mut dyn Outbox<H>,
    ) -> Distributed {
        let mut distributed = Distributed::default();
        for target in targets {
            match self.enqueue(now, *target, incoming, out) {
                Enqueued::Taken => {}
                Enqueued::Stored(stored) => {
                    distributed.position = distributed.position.max(Some(stored));
                    distributed.stored += 1;
                }
                Enqueued::Rejected => distributed.is_rejected = true,
            }
        }
        // A delayed message is not returned: only its end of delay shows whether it has a route.
        if targets.is_empty() && !self.topology.has_passed_delay() {
            let outgoing = incoming.outgoing();
            let replied = self.reply(&outgoing, out);
            if replied != Replied::Sent {
                self.ledger.counts.unroutable += 1;
                if let Some(exchange) = self.topology.exchange(publish.exchange) {
                    self.topology.count_unroutable(exchange);
                }
                self.channels.count_unrouted(key, publish.mandatory);
                // Without `mandatory` the confirm is the publisher's only notice, so that a lost reply is refused.
                distributed.is_rejected = match publish.mandatory {
                    true => !self.return_message(key, &outgoing, out),
                    false => replied == Replied::Lost,
                };
            }
        }
        distributed
    }

    /// Counts a publication by its exchange.
    #[inline(always)]
    pub(super) fn count_routed(&mut self, exchange: ExchangeKey, queues: usize) {
        self.ledger.counts.routed += queues as u64;
        self.topology.count(exchange, queues);
    }

    /// Sends a message back to its publisher; returns whether that succeeded.
    fn return_message(
        &mut self,
        key: ChannelKey,
        outgoing: &Outgoing<'_>,
        out: &mut dyn Outbox<H>,
    ) -> bool {
        let method = BasicReturn {
            reply_code: ReplyCode::NoRoute.code(),
            reply_text: ReplyCode::NoRoute.name(),
            exchange: outgoing.exchange,
            routing_key: outgoing.routing_key,
        };
        let returned = self.channels.send_owed(key, method, outgoing, out);
        self.ledger.counts.returned += u64::from(returned.is_ok());
        returned.is_ok()
    }
}

/// Writes the properties as receivers see them: with the address of the channel that waits for a reply, without the
/// keys of blind copies.
#[cold]
fn rewrite(
    caller: &Caller<'_>,
    facets: &Facets<'_>,
    reply_address: Option<&str>,
    properties: Properties<'_>,
    rewritten: &mut Vec<u8>,
) -> Result<(), Fault> {
    if facets.wants_reply && reply_address.is_none() {
        return Err(caller.precondition_failed("fast reply consumer does not exist"));
    }
    let headers = without_blind_copies(facets.headers);
    let changes = Changes {
        headers: facets.has_blind_copies.then_some(headers.as_table()),
        reply_to: reply_address.filter(|_| facets.wants_reply),
        ..Changes::default()
    };
    properties.write_changed(&changes, rewritten);
    Ok(())
}

/// A message in a transaction.
#[cold]
fn publication(
    publish: &BasicPublish<'_>,
    message: Message<'_>,
    facets: &Facets<'_>,
) -> Publication {
    let (exchange, routing_key) = (publish.exchange, publish.routing_key);
    let content = message.content.unwrap_or_else(|| {
        let (properties, body) = (message.properties, message.body);
        Arc::new(MessageContent::of(exchange, routing_key, properties, body))
    });
    let full_headers = facets.has_blind_copies.then(|| owned(facets.headers));
    Publication {
        content,
        full_headers: full_headers.map(Box::new),
        mandatory: publish.mandatory,
    }
}
