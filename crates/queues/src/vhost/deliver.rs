//! From a queue to whoever's turn it is.

use crosstie_amqp::method::BasicDeliver;
use crosstie_amqp::{Changes, Properties, TableBuf, Value};

use super::Vhost;
use super::turns::Next;
use crate::keys::ConsumerKey;
use crate::messages::Messages;
use crate::queue::Entry;
use crate::timers::Timer;
use crate::unacked::Delivery;
use crate::{MessageContent, Outbox, QueueKey, Record, Refused, Time};

/// What is written to a consumer, borrowed from wherever it is.
pub(super) struct Sending<'a> {
    pub(super) exchange: &'a str,
    pub(super) routing_key: &'a str,
    pub(super) properties: Properties<'a>,
    pub(super) body: &'a [u8],
    pub(super) is_redelivered: bool,
}

impl<'a> Sending<'a> {
    pub(super) fn of(entry: &'a Entry) -> Self {
        let (exchange, routing_key, properties, body) = entry.content.parts();
        Self {
            exchange,
            routing_key,
            properties,
            body,
            is_redelivered: entry.is_redelivered,
        }
    }
}

impl<H> Vhost<H> {
    /// What is beyond a queue's bounds goes, and what is ready to whoever is.
    pub(super) fn attend(&mut self, now: Time, key: QueueKey, out: &mut dyn Outbox<H>) {
        // First the bounds, then whoever waits: what is beyond them goes to nobody.
        self.drop_overflow(key);
        self.deliver(now, key, out);
    }

    /// Sends what is ready to whoever is, drops what has expired, and sets the timer for what will.
    /// What is left when this input's steps are spent waits for others.
    pub(super) fn deliver(&mut self, now: Time, key: QueueKey, out: &mut dyn Outbox<H>) {
        self.drop_expired(now, key);
        while let Some(queue) = self.queues.find_mut(key) {
            if queue.messages.is_empty() || queue.returning > 0 {
                break;
            }
            if self.steps.is_over() {
                return self.postpone(key);
            }
            let Some(next) = self.next_consumer(key) else {
                break;
            };
            let Some(queue) = self.queues.find_mut(key) else {
                break;
            };
            let is_quorum = queue.is_quorum();
            let Some(entry) = queue.pop() else {
                break;
            };
            let mut counted = Vec::new();
            let mut sending = Sending::of(&entry);
            if is_quorum && entry.deliveries > 0 {
                sending.properties =
                    with_delivery_count(sending.properties, entry.deliveries, &mut counted);
            }
            match self.send(next, &sending, out) {
                Ok(Some(tag)) => self.hold(now, key, Some(next.consumer), tag, entry),
                Ok(None) => self.forget(key, entry),
                Err(_) => {
                    self.steps.spend(1);
                    if let Some(queue) = self.queues.find_mut(key) {
                        queue.insert(entry);
                    }
                }
            }
            self.drop_expired(now, key);
        }
        self.set_head_timer(key);
    }

    /// Sends to a consumer whose turn it is, and has had it then. Returns the delivery tag of a
    /// message that has to be acknowledged. Whose connection refuses it is not the next any more.
    pub(super) fn send(
        &mut self,
        next: Next,
        sending: &Sending<'_>,
        out: &mut dyn Outbox<H>,
    ) -> Result<Option<u64>, Refused> {
        let consumer = self
            .consumers
            .find_mut(next.consumer)
            .ok_or(Refused::Gone)?;
        let channel = self.channels.find_mut(consumer.channel);
        let channel = channel.ok_or(Refused::Gone)?;
        let connection = self.connections.find_mut(channel.connection);
        let connection = connection.ok_or(Refused::Gone)?;
        let method = BasicDeliver {
            consumer_tag: &consumer.tag,
            delivery_tag: channel.last_tag + 1,
            redelivered: sending.is_redelivered,
            exchange: sending.exchange,
            routing_key: sending.routing_key,
        };
        let sent = out.send_content(
            &connection.handle,
            channel.number,
            &method.into(),
            sending.properties,
            sending.body,
        );
        if let Err(refused) = sent {
            connection.is_full = true;
            return Err(refused);
        }
        self.counts.delivered += 1;
        self.steps.spend_on_body(sending.body.len());
        let tag = channel.next_tag();
        let needs_ack = !consumer.no_ack;
        if needs_ack {
            consumer.unacked += 1;
            channel.prefetched += 1;
        }
        if !next.is_alone {
            self.pass_turn(next.consumer);
        }
        Ok(needs_ack.then_some(tag))
    }

    /// A message waits for its acknowledgement.
    pub(super) fn hold(
        &mut self,
        now: Time,
        queue: QueueKey,
        consumer: Option<ConsumerKey>,
        tag: u64,
        entry: Entry,
    ) {
        let channel_key = match consumer {
            Some(consumer) => self.consumers.find(consumer).map(|c| c.channel),
            None => None,
        };
        if let Some(channel) = channel_key {
            self.hold_in(now, queue, (channel, consumer), tag, entry);
        }
    }

    /// The same in a given channel, for a `basic.get`.
    pub(super) fn hold_in(
        &mut self,
        now: Time,
        queue: QueueKey,
        (key, consumer): (crate::ChannelKey, Option<ConsumerKey>),
        tag: u64,
        entry: Entry,
    ) {
        let Some(channel) = self.channels.find_mut(key) else {
            return;
        };
        if let Some(queue) = self.queues.find_mut(queue) {
            queue.unacknowledged += 1;
        }
        channel.unacked.push(
            tag,
            Delivery {
                queue,
                consumer,
                delivered_at: now,
                entry,
            },
        );
        let is_charged = channel.unacked_bytes == channel.unacked.memory_bytes();
        if let Some(timeout_ms) = self.config.consumer_timeout_ms
            && !channel.has_timer
        {
            channel.has_timer = true;
            let due = Time(now.0.saturating_add(timeout_ms));
            self.set_timer(due, Timer::Unacked(key));
        }
        if !is_charged {
            self.charge_unacked(key);
        }
    }

    /// A message is done with: for this queue it does not exist any more.
    pub(super) fn forget(&mut self, queue: QueueKey, entry: Entry) {
        if entry.is_stored {
            self.forget_stored(queue, &entry);
        }
        self.release(&entry);
    }

    /// Apart, so that the rest is small enough to be a part of its callers.
    #[inline(never)]
    fn forget_stored(&mut self, queue: QueueKey, entry: &Entry) {
        if let Some(id) = self.queues.find(queue).and_then(|queue| queue.id) {
            self.record(Record::Dequeued {
                queue: id,
                place: entry.place,
            });
            self.not_owed(&entry.content);
        }
    }

    /// An entry more in memory.
    pub(super) fn account(&mut self, entry: &Entry) {
        self.memory_bytes += Entry::MEMORY_BYTES;
        self.account_content(&entry.content);
    }

    /// A holder of a message's bytes more.
    pub(super) fn account_content(&mut self, content: &MessageContent) {
        if content.hold() {
            self.memory_bytes += content.memory_bytes();
        }
    }

    /// An entry less.
    pub(super) fn release(&mut self, entry: &Entry) {
        self.memory_bytes = self.memory_bytes.saturating_sub(Entry::MEMORY_BYTES);
        self.release_content(&entry.content);
    }

    /// A holder of a message's bytes less.
    pub(super) fn release_content(&mut self, content: &MessageContent) {
        if content.release() {
            let bytes = content.memory_bytes();
            self.memory_bytes = self.memory_bytes.saturating_sub(bytes);
        }
    }

    /// So many less; at once, when nobody is connected yet.
    pub(super) fn release_all(&mut self, mut entries: Messages) {
        while let Some(entry) = entries.pop() {
            self.release(&entry);
        }
    }

    pub(super) fn record(&mut self, record: Record) {
        self.journal.position.0 += 1;
        self.journal.records.push(record);
    }
}

/// What a quorum queue says of itself: how often it tried in vain. Consumers are not told of a
/// first try, `basic.get` is.
pub(super) fn with_delivery_count<'a>(
    properties: Properties<'a>,
    deliveries: u32,
    bytes: &'a mut Vec<u8>,
) -> Properties<'a> {
    const HEADER: &str = "x-delivery-count";
    let old_headers = properties.parse_for_broker().headers;
    let mut headers = TableBuf::new();
    for (name, value) in old_headers.iter().flat_map(|headers| headers.iter()) {
        if name != HEADER {
            headers = headers.with(name, value);
        }
    }
    headers = headers.with(HEADER, Value::I64(deliveries.into()));
    let changes = Changes {
        headers: Some(headers.as_table()),
        ..Changes::default()
    };
    properties.write_changed(&changes, bytes);
    Properties::from_checked_bytes(bytes)
}
