//! A message comes in.

use std::sync::Arc;

use crosstie_amqp::method::{BasicPublish, BasicReturn};
use crosstie_amqp::{
    Arguments, Changes, DeliveryMode, Properties, ReplyCode, Table, TableBuf, Value,
};

use super::Vhost;
use super::enqueue::{Enqueued, Incoming};
use super::replies::{REPLY_QUEUE, Replied};
use crate::channel::Connection;
use crate::topology::{Caller, kind};
use crate::transaction::Publication;
use crate::{ChannelKey, Fault, MessageContent, Outbox, Position, QueueKey, Time};

/// What of a message's properties is the broker's business.
#[derive(Default)]
pub(super) struct Facets<'a> {
    pub(super) headers: Table<'a>,
    pub(super) handling: Handling,
    /// Somebody waits for an answer on its own channel.
    wants_reply: bool,
    /// There are more keys than one.
    has_copies: bool,
    /// There are keys that receivers must not see.
    has_blind_copies: bool,
}

/// How queues are to treat a message.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Handling {
    pub(super) is_persistent: bool,
    pub(super) ttl_ms: Option<u64>,
}

/// A message that is published.
struct Message<'a> {
    properties: Properties<'a>,
    body: &'a [u8],
    /// The same as queues keep it, where it was put together so.
    content: Option<Arc<MessageContent>>,
}

/// What queues did with a message.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Distributed {
    /// One of them did not take it.
    pub(super) is_rejected: bool,
    /// Where a store has it all, if it is to.
    position: Option<Position>,
    /// For how many of them.
    stored: u32,
}

impl<H> Vhost<H> {
    /// Handles `basic.publish` with its content. What confirms it must is sent by
    /// [`Self::flush_confirms`] or later.
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
        };
        self.publish_message(now, channel, publish, message, out)
    }

    /// The same of a message that was put together before ([`crate::ContentAssembly`]), by whose names it
    /// is published: queues keep it as it is.
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
        };
        self.publish_message(now, channel, &publish, message, out)
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
        if self.died > 0 {
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
        let Message {
            mut properties,
            body,
            mut content,
        } = message;
        let Some(channel) = self.channels.find_mut(key) else {
            return Ok(());
        };
        let Some(connection) = self.connections.find(channel.connection) else {
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
        let message_bytes_max = self.config.limits.message_bytes_max;
        if body.len() > message_bytes_max {
            return Err(caller.precondition_failed(format!(
                "message size {} is larger than configured max size {message_bytes_max}",
                body.len()
            )));
        }
        let exchange = self
            .topology
            .exchange_to_publish(&caller, publish.exchange)?;
        let copy_keys_max = self.config.limits.copy_keys_max;
        let facets = Facets::of(&caller, connection, properties, copy_keys_max)?;
        if facets.has_copies {
            let (routing_key, headers) = (publish.routing_key, facets.headers);
            self.topology.check_copies(
                &caller,
                exchange,
                routing_key,
                headers,
                &mut self.targets,
            )?;
        }
        let mut rewritten = Vec::new();
        if facets.wants_reply || facets.has_blind_copies {
            let reply_to = match (facets.wants_reply, &channel.reply_consumer) {
                (false, _) => None,
                (true, Some(reply)) => Some(&*reply.address),
                (true, None) => {
                    return Err(caller.precondition_failed("fast reply consumer does not exist"));
                }
            };
            let headers = without_blind_copies(facets.headers);
            let changes = Changes {
                headers: facets.has_blind_copies.then_some(headers.as_table()),
                reply_to,
                ..Changes::default()
            };
            properties.write_changed(&changes, &mut rewritten);
        }
        if !rewritten.is_empty() {
            properties = Properties::from_checked_bytes(&rewritten);
            content = None;
        }
        self.counts.published += 1;
        if let Some(transaction) = &channel.transaction {
            if transaction.is_committing {
                return self.check_not_committing(key, caller.method);
            }
            let (exchange, routing_key) = (publish.exchange, publish.routing_key);
            let content = content.unwrap_or_else(|| {
                Arc::new(MessageContent::of(exchange, routing_key, properties, body))
            });
            let full_headers = facets.has_blind_copies.then(|| owned(facets.headers));
            return self.hold_publication(
                key,
                Publication {
                    content,
                    full_headers: full_headers.map(Box::new),
                    mandatory: publish.mandatory,
                },
            );
        }
        let tag = channel.confirms.as_mut().map(|confirms| {
            confirms.last += 1;
            confirms.last
        });

        let mut targets = std::mem::take(&mut self.targets);
        targets.clear();
        self.topology
            .route(exchange, publish.routing_key, facets.headers, &mut targets);
        let mut incoming = Incoming {
            exchange: publish.exchange,
            routing_key: publish.routing_key,
            properties,
            body,
            handling: facets.handling,
            content,
        };
        let distributed = self.distribute(now, key, publish, &targets, &mut incoming, out);
        self.targets = targets;
        match tag {
            Some(tag) if distributed.is_rejected => self.refuse(key, tag, out),
            Some(tag) => {
                let content = incoming.content.as_deref();
                let stored = distributed.position.zip(content);
                let stored = stored.map(|(at, content)| (at, distributed.stored, content));
                self.confirm(key, tag, stored);
            }
            None => {}
        }
        Ok(())
    }

    /// Gives a message to the queues that it is for; without any it is a reply, or goes back to
    /// its publisher.
    // It has two callers; one is the way of every message.
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
        if targets.is_empty() {
            let (properties, body) = (incoming.properties, incoming.body);
            let replied = self.reply(publish, properties, body, out);
            if replied != Replied::Sent {
                self.counts.unroutable += 1;
                // Whoever hears nothing else is not told that all is well.
                distributed.is_rejected = match publish.mandatory {
                    true => !self.return_message(key, publish, properties, body, out),
                    false => replied == Replied::Lost,
                };
            }
        }
        distributed
    }

    /// Whether its publisher has it back.
    fn return_message(
        &mut self,
        key: ChannelKey,
        publish: &BasicPublish<'_>,
        properties: Properties<'_>,
        body: &[u8],
        out: &mut dyn Outbox<H>,
    ) -> bool {
        let Some(channel) = self.channels.find(key) else {
            return false;
        };
        let Some(connection) = self.connections.find(channel.connection) else {
            return false;
        };
        let method = BasicReturn {
            reply_code: ReplyCode::NoRoute.code(),
            reply_text: ReplyCode::NoRoute.name(),
            exchange: publish.exchange,
            routing_key: publish.routing_key,
        };
        let (to, number) = (&connection.handle, channel.number);
        let returned = out.send_owed(to, number, &method.into(), properties, body);
        self.counts.returned += u64::from(returned.is_ok());
        returned.is_ok()
    }
}

impl<'a> Facets<'a> {
    fn of<H>(
        caller: &Caller<'_>,
        connection: &Connection<H>,
        properties: Properties<'a>,
        copy_keys_max: usize,
    ) -> Result<Self, Fault> {
        let named = properties.parse_for_broker();
        if let Some(user) = named.user_id
            && user != caller.user
            && !connection.client.is_impersonator
        {
            return Err(caller.precondition_failed(format!(
                "user_id property set to '{user}' but authenticated user was '{}'",
                caller.user
            )));
        }
        let ttl_ms = match named.expiration {
            None => None,
            Some(text) => Some(expiration_ms(text).map_err(|reason| {
                caller.precondition_failed(format!("invalid expiration '{text}': {reason}"))
            })?),
        };
        let is_persistent = match named.delivery_mode {
            None => false,
            Some(mode) if mode == DeliveryMode::Transient as u8 => false,
            Some(mode) if mode == DeliveryMode::Persistent as u8 => true,
            Some(mode) => {
                let text = format!("invalid message: {{delivery_mode_unknown,{mode}}}");
                return Err(caller.precondition_failed(text));
            }
        };
        let headers = named.headers.unwrap_or_default();
        let mut has_copies = false;
        let mut has_blind_copies = false;
        if !headers.is_empty() {
            let mut copy_keys = 0;
            for name in ["CC", "BCC"] {
                match headers.find(name) {
                    None => {}
                    Some(Value::Array(keys)) => {
                        has_copies = true;
                        has_blind_copies |= name == "BCC";
                        if let Some(key) = keys.iter().find_map(too_long) {
                            return Err(caller.precondition_failed(format!(
                                "invalid message: a routing key in header \"{name}\" has {} \
                                 bytes; expected at most {ROUTING_KEY_BYTES_MAX}",
                                key.len()
                            )));
                        }
                        copy_keys += keys.iter().count();
                        check_copy_keys(caller, copy_keys, copy_keys_max)?;
                    }
                    Some(value) => {
                        return Err(caller.precondition_failed(format!(
                            "invalid message: {{unacceptable_type_in_header,\"{name}\",{}}}",
                            kind(value)
                        )));
                    }
                }
            }
        }
        Ok(Self {
            headers,
            handling: Handling {
                is_persistent,
                ttl_ms,
            },
            wants_reply: named.reply_to == Some(REPLY_QUEUE),
            has_copies,
            has_blind_copies,
        })
    }

    /// Of a message that was checked when it was published.
    pub(super) fn of_checked(properties: Properties<'a>) -> Self {
        let named = properties.parse_for_broker();
        let ttl_ms = named.expiration.and_then(|text| expiration_ms(text).ok());
        Self {
            headers: named.headers.unwrap_or_default(),
            handling: Handling {
                is_persistent: named.delivery_mode == Some(DeliveryMode::Persistent as u8),
                ttl_ms,
            },
            ..Self::default()
        }
    }
}

/// The protocol's bound on every other routing key.
const ROUTING_KEY_BYTES_MAX: usize = 255;

fn too_long(key: Value<'_>) -> Option<&str> {
    key.as_str().filter(|key| key.len() > ROUTING_KEY_BYTES_MAX)
}

/// Each key is routed by as the publication's own is, for one message's price.
#[cold]
fn check_copy_keys(caller: &Caller<'_>, count: usize, max: usize) -> Result<(), Fault> {
    match count > max {
        true => Err(caller.precondition_failed(format!(
            "invalid message: its headers CC and BCC have {count} keys or more, more than \
             copy_keys_max ({max})"
        ))),
        false => Ok(()),
    }
}

fn owned(table: Table<'_>) -> TableBuf {
    table.iter().fold(TableBuf::new(), |owned, (name, value)| {
        owned.with(name, value)
    })
}

fn without_blind_copies(headers: Table<'_>) -> TableBuf {
    let mut kept = TableBuf::new();
    for (name, value) in headers.iter().filter(|(name, _)| *name != "BCC") {
        kept = kept.with(name, value);
    }
    kept
}

/// The longest time RabbitMQ's timers take: ten years.
const EXPIRATION_MS_MAX: u64 = 10 * 365 * 24 * 60 * 60 * 1000;

/// Digits, perhaps with a sign; the reason in RabbitMQ's words, which are Erlang's terms.
fn expiration_ms(text: &str) -> Result<u64, String> {
    // What it mostly is.
    if let Ok(expiration_ms @ ..=EXPIRATION_MS_MAX) = text.parse() {
        return Ok(expiration_ms);
    }
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let end = digits
        .find(|character: char| !character.is_ascii_digit())
        .unwrap_or(digits.len());
    let (number, rest) = digits.split_at(end);
    if number.is_empty() {
        return Err("no_integer".to_owned());
    }
    if !rest.is_empty() {
        return Err(format!("{{leftover_string,{rest:?}}}"));
    }
    let shown = number.trim_start_matches('0');
    match number.parse::<u64>() {
        _ if text.starts_with('-') && !shown.is_empty() => {
            Err(format!("{{value_negative,-{shown}}}"))
        }
        Ok(expiration_ms @ ..=EXPIRATION_MS_MAX) => Ok(expiration_ms),
        _ => Err(format!("{{value_too_large,{shown}}}")),
    }
}
