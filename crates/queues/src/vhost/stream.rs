//! Streams: messages are appended, and consumers read them at their own places.

use std::sync::Arc;

use crosstie_amqp::method::BasicConsume;
use crosstie_amqp::{ReplyCode, Table};

use super::Vhost;
use super::consume::{PRIORITY, STREAM_OFFSET, invalid_argument};
use super::deliver::send;
use super::methods::Context;
use crate::channels::Outgoing;
use crate::keys::ConsumerKey;
use crate::queues::{Enqueued, Entry, Incoming, Queue};
use crate::streams::{
    Reader, Start, StreamDeclared, StreamExtent, StreamFilter, StreamPage, StreamWant,
};
use crate::topology::{Caller, QueueArguments, QueueKind, Resource};
use crate::{Fault, Outbox, QueueId, QueueKey, StreamLimits, Time};

/// Inputs from the keeper of the streams' files.
impl<H> Vhost<H> {
    /// The streams that were restored, whose files the owner opens: [`Self::restore_stream`].
    pub fn declared_streams(&self) -> Vec<StreamDeclared> {
        let found = self.streams.ids().filter_map(|(id, key)| {
            let queue = self.queues.find(key)?;
            Some(StreamDeclared {
                id,
                name: Arc::clone(&queue.name),
                limits: queue.settings.stream_limits(),
            })
        });
        found.collect()
    }

    pub fn stream_count(&self) -> usize {
        self.streams.ids().count()
    }

    /// Sets what a stream's files hold, before any client connects.
    pub fn restore_stream(&mut self, id: QueueId, extent: &StreamExtent) {
        self.streams.restore(id, extent);
    }

    /// The keeper has written messages, or removed old ones. `page`: what was written last, if it is short; readers that
    /// wait are sent it. The confirms of its publishers are for [`Self::handle_committed`].
    pub fn handle_written(
        &mut self,
        now: Time,
        id: QueueId,
        extent: &StreamExtent,
        page: Option<Arc<StreamPage>>,
        out: &mut dyn Outbox<H>,
    ) {
        self.begin();
        if let Some(key) = self.streams.written(id, extent, page) {
            self.deliver_stream(now, key, out);
            self.end(now, out);
        }
    }

    /// Takes the next page to be read. The owner reads it, and hands it to [`Self::handle_stream_page`].
    pub fn take_stream_want(&mut self) -> Option<StreamWant> {
        while let Some((key, consumer)) = self.streams.take_want() {
            if let Some(stream) = self.streams.find(key)
                && let Some(reader) = self.consumers.reader_mut(consumer)
            {
                return Some(StreamWant {
                    stream: key,
                    id: stream.id,
                    from: reader.from(),
                    end: stream.end,
                    filter: reader.filter(),
                    reader: consumer,
                });
            }
        }
        None
    }

    /// Whether pages of streams are to be read.
    pub fn has_stream_wants(&self) -> bool {
        self.streams.has_wants()
    }

    /// Hands a page to the reader that requested it. An empty page ends where the next one is to begin.
    pub fn handle_stream_page(
        &mut self,
        now: Time,
        want: &StreamWant,
        page: Arc<StreamPage>,
        out: &mut dyn Outbox<H>,
    ) {
        self.begin();
        let Some(reader) = self.consumers.reader_mut(want.reader) else {
            return;
        };
        reader.add(page, &mut self.ledger);
        self.consumers.has_message(want.reader);
        self.deliver_stream(now, want.stream, out);
        self.end(now, out);
    }

    /// Messages of these streams wait because they cannot be written. Dead letters for them stay with their queues.
    pub fn note_failing_streams(&mut self, ids: impl Iterator<Item = QueueId>) {
        self.streams.note_failing(ids);
    }

    /// All streams can be written: dead letters for them are tried again.
    pub fn note_streams_going_on(&mut self) {
        if !self.streams.note_going_on() {
            return;
        }
        let changes = self.topology.changes();
        let refused: Vec<QueueKey> = self.queues.refused().iter().copied().collect();
        for key in refused {
            if self.queues.begin_pass(key, changes) {
                self.queues.postpone(key);
            }
        }
    }

    /// The queue of a stream, if it still exists.
    pub fn stream_key(&self, id: QueueId) -> Option<QueueKey> {
        self.streams.key(id)
    }
}

/// The short paths of clients' methods.
impl<H> Vhost<H> {
    /// The limits of a new queue that is a stream, if the vhost may have streams.
    pub(super) fn check_streams(
        &self,
        caller: &Caller<'_>,
        resource: Resource<'_>,
        settings: &QueueArguments,
    ) -> Result<Option<StreamLimits>, Fault> {
        if settings.kind != QueueKind::Stream {
            return Ok(None);
        }
        if self.config.has_streams {
            return Ok(Some(settings.stream_limits()));
        }
        Err(caller.precondition_failed(format!(
            "streams (x-queue-type) are not supported in vhost '{}', which has no store of its own \
             or is replicated; asked for by {resource}",
            self.config.name
        )))
    }

    /// Appends a message. Nothing of it stays in memory but what the keeper holds until it is written.
    pub(super) fn append(
        &mut self,
        now: Time,
        key: QueueKey,
        incoming: &mut Incoming<'_>,
    ) -> Enqueued {
        let content = incoming.content();
        let position = self.streams.append(now, key, content, &mut self.ledger);
        position.map_or(Enqueued::Taken, Enqueued::Stored)
    }

    /// Sends readers what they have, and requests what they lack, as far as this input's steps allow.
    pub(super) fn deliver_stream(&mut self, now: Time, key: QueueKey, out: &mut dyn Outbox<H>) {
        if self.streams.find(key).is_none() {
            return;
        }
        while let Some((consumer, tail)) = self.streams.next_woken(key) {
            self.ledger.steps.spend(1);
            self.wake_reader(key, consumer, tail);
            if self.ledger.steps.is_over() {
                return self.queues.postpone(key);
            }
        }
        while let Some(next) = self.next_consumer(key) {
            if self.ledger.steps.is_over() {
                return self.queues.postpone(key);
            }
            let consumer = next.consumer();
            let Some(reader) = self.consumers.reader_mut(consumer) else {
                return;
            };
            let Some((page, at)) = reader.front(&mut self.ledger) else {
                if reader.has_page() {
                    return self.queues.postpone(key);
                }
                self.consumers.await_message(next);
                self.await_more(key, consumer);
                continue;
            };
            let Some(message) = page.message(at) else {
                return;
            };
            let outgoing = Outgoing {
                exchange: message.exchange,
                routing_key: message.routing_key,
                properties: message.properties,
                body: message.body,
                is_redelivered: false,
            };
            let rooms = (&mut self.consumers, &mut self.channels, &mut self.ledger);
            let Ok(sent) = send(next, &outgoing, rooms, out) else {
                self.ledger.steps.spend(1);
                continue;
            };
            if let Some(reader) = self.consumers.reader_mut(consumer) {
                reader.advance(&message);
                self.streams.read_ahead(key, consumer, reader);
            }
            if self.tracing.is_some() {
                self.trace_delivered(sent.channel, key, &outgoing, out);
            }
            let entry = Entry::of_stream(self.streams.blank(), message.offset);
            self.ledger.account(&entry);
            self.queues.count_sent(key, &mut self.ledger);
            self.hold(now, key, sent, entry);
        }
    }

    /// Gives a reader that waited the messages that were written last, if it goes on there.
    fn wake_reader(&mut self, key: QueueKey, consumer: ConsumerKey, tail: Option<Arc<StreamPage>>) {
        let Some(reader) = self.consumers.reader_mut(consumer) else {
            return;
        };
        match tail.filter(|page| reader.fits(page)) {
            Some(page) => {
                reader.add(page, &mut self.ledger);
                self.consumers.has_message(consumer);
            }
            None => self.await_more(key, consumer),
        }
    }

    fn await_more(&mut self, key: QueueKey, consumer: ConsumerKey) {
        let Some(mut reader) = self.consumers.take_reader(consumer) else {
            return;
        };
        let consumers = self.consumers.count_of_queue(key);
        let is_alive = |consumer| self.consumers.is_there(consumer);
        self.streams
            .await_more(key, consumer, &mut reader, consumers, is_alive);
        self.consumers.put_reader(consumer, reader);
    }

    /// Checks a `basic.consume` of a stream; returns where it begins. `None`: the queue is gone.
    pub(super) fn check_readable(
        &self,
        now: Time,
        context: &Context,
        key: QueueKey,
        resource: Resource<'_>,
        method: &BasicConsume<'_>,
    ) -> Result<Option<Box<Reader>>, Fault> {
        let caller = context.caller();
        let Some(queue) = self.queues.find(key) else {
            return Ok(None);
        };
        check_consumer_arguments(&caller, resource, queue, method.arguments)?;
        let channel = self.channels.find(context.channel);
        let (own, global) = channel.map_or((0, 0), |channel| {
            (channel.prefetch_count, channel.prefetch_count_global)
        });
        if own == 0 {
            let text = format!("consumer prefetch count is not set for '{resource}'");
            return Err(caller.precondition_failed(text));
        }
        if global != 0 {
            let text = format!("{resource} does not support global qos");
            return Err(caller.fault(ReplyCode::NotImplemented, text));
        }
        if method.no_ack {
            let what = "automatic acknowledgement";
            return Err(not_supported(context.method, what, resource));
        }
        let invalid = |name: &str, reason: &str| {
            caller.precondition_failed(format!("invalid arg '{name}' for {resource}: {reason}"))
        };
        let start = Start::parse(now, method.arguments.find(STREAM_OFFSET))
            .map_err(|reason| invalid(STREAM_OFFSET, &reason))?;
        let filter = StreamFilter::parse(method.arguments)
            .map_err(|(name, reason)| invalid(name, &reason))?;
        let from = self.streams.place(key, start);
        Ok(from.map(|from| Box::new(Reader::new(from, filter))))
    }

    /// Checks that a queue is no stream, whose clients may not do that.
    pub(super) fn check_no_stream(
        &self,
        method: (u16, u16),
        key: QueueKey,
        what: &str,
    ) -> Result<(), Fault> {
        match self.queues.find(key) {
            Some(queue) if queue.is_stream() => {
                let resource = Resource::queue(&queue.name, &self.config.name);
                Err(not_supported(method, what, resource))
            }
            _ => Ok(()),
        }
    }
}

fn not_supported(method: (u16, u16), what: &str, resource: Resource<'_>) -> Fault {
    let text = format!("{what} not supported by stream queues {resource}");
    Fault::in_method(ReplyCode::NotImplemented, method, text)
}

/// Arguments of consumers that RabbitMQ refuses for streams.
fn check_consumer_arguments(
    caller: &Caller<'_>,
    resource: Resource<'_>,
    queue: &Queue,
    arguments: Table<'_>,
) -> Result<(), Fault> {
    const REFUSED: [&str; 2] = [PRIORITY, "x-cancel-on-ha-failover"];
    let mut refused = REFUSED.iter();
    match refused.find(|name| arguments.find(name).is_some()) {
        Some(name) => Err(caller.precondition_failed(invalid_argument(name, resource, queue))),
        None => Ok(()),
    }
}
