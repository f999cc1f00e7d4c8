//! Adding and removing of consumers, and their limits.

use std::sync::Arc;

use crosstie_amqp::method::{
    BasicCancel, BasicCancelOk, BasicConsume, BasicConsumeOk, BasicQos, BasicQosOk,
};
use crosstie_amqp::{ReplyCode, Table};
use crosstie_auth::Access;

use super::Vhost;
use super::methods::Context;
use crate::consumers::{Consumer, Left, NewConsumer, SingleActive};
use crate::queues::Queue;
use crate::streams::{FILTER, MATCH_UNFILTERED};
use crate::topology::{Caller, Resource, integer};
use crate::{ChannelKey, Fault, Outbox, QueueKey, Time};

impl<H> Vhost<H> {
    pub(super) fn handle_consume(
        &mut self,
        now: Time,
        context: &Context,
        method: &BasicConsume<'_>,
        out: &mut dyn Outbox<H>,
    ) -> Result<(), Fault> {
        if self.handle_reply_consume(context, method, out)? {
            return Ok(());
        }
        self.check_room_for_consumer(context, method)?;
        let caller = context.caller();
        let name = self.queue_name(context, method.queue, out)?;
        let vhost = self.config.name.clone();
        let resource = Resource::queue(&name, &vhost);
        caller.check(Access::Read, resource)?;
        let key = self.find_queue(context, &name)?;
        let is_stream = self.queues.find(key).is_some_and(Queue::is_stream);
        let priority = match is_stream {
            true => 0,
            false => priority(&caller, resource, method.arguments)?,
        };
        let reader = match is_stream {
            true => self.check_readable(now, context, key, resource, method)?,
            false => {
                self.check_consumable(context, key, resource, method)?;
                None
            }
        };
        let tag: Arc<str> = match method.consumer_tag {
            "" => self.random.name("amq.ctag-"),
            tag => tag.into(),
        };
        let channel = self.channels.find(context.channel);
        let queue = self.queues.find(key);
        self.consumers.add(NewConsumer {
            channel: context.channel,
            queue: key,
            tag: tag.clone(),
            priority,
            no_ack: method.no_ack,
            is_exclusive: method.exclusive && !is_stream,
            prefetch_count: channel.map_or(0, |channel| channel.prefetch_count),
            single_active: match queue {
                Some(queue) if !queue.settings.is_single_active_consumer => SingleActive::No,
                Some(queue) if queue.is_quorum() => SingleActive::ByOrder,
                Some(_) => SingleActive::ByPriority,
                None => SingleActive::No,
            },
            reader,
        });
        self.channels.add_consumer(context.channel, &tag);
        let ok = BasicConsumeOk { consumer_tag: &tag };
        self.answer(context.channel, method.no_wait, ok, out)?;
        self.deliver(now, key, out);
        Ok(())
    }

    /// Checks that a channel and its connection may have another consumer, with that tag.
    fn check_room_for_consumer(
        &self,
        context: &Context,
        method: &BasicConsume<'_>,
    ) -> Result<(), Fault> {
        let caller = context.caller();
        self.check_tag_is_free(context, method.consumer_tag)?;
        let consumers_max = self.config.limits.consumers_max;
        if self.consumers.count_of_channel(context.channel) >= consumers_max {
            return Err(caller.precondition_failed(format!(
                "consumer limit of the channel ({consumers_max}) is reached"
            )));
        }
        let consumers_max = self.config.limits.connection_consumers_max;
        let connection = self.channels.connection(context.connection);
        if connection.is_some_and(|c| c.consumers >= consumers_max) {
            return Err(caller.precondition_failed(format!(
                "consumer limit of the connection ({consumers_max}) is reached"
            )));
        }
        Ok(())
    }

    /// Checks that no consumer of the channel has that tag.
    pub(super) fn check_tag_is_free(&self, context: &Context, tag: &str) -> Result<(), Fault> {
        let channel = self.channels.find(context.channel);
        if self.consumers.has_tag(context.channel, tag)
            || channel.is_some_and(|channel| channel.has_reply_consumer(tag))
        {
            let text = format!("attempt to reuse consumer tag '{tag}'");
            return Err(context.caller().fault(ReplyCode::NotAllowed, text));
        }
        Ok(())
    }

    /// Checks that a queue can be consumed with these options.
    fn check_consumable(
        &self,
        context: &Context,
        key: QueueKey,
        resource: Resource<'_>,
        method: &BasicConsume<'_>,
    ) -> Result<(), Fault> {
        let caller = context.caller();
        let Some(queue) = self.queues.find(key) else {
            return Ok(());
        };
        let mut of_streams = [STREAM_OFFSET, FILTER, MATCH_UNFILTERED].iter();
        if let Some(name) = of_streams.find(|name| method.arguments.find(name).is_some()) {
            let text = invalid_argument(name, resource, queue);
            return Err(caller.precondition_failed(text));
        }
        let channel = self.channels.find(context.channel);
        if queue.is_quorum() && channel.is_some_and(|c| c.prefetch_count_global != 0) {
            let text = format!("{resource} does not support global qos");
            return Err(caller.fault(ReplyCode::NotImplemented, text));
        }
        let has_consumers = self.consumers.count_of_queue(key) > 0;
        if self.consumers.is_exclusive(key)
            || (method.exclusive && (has_consumers || queue.settings.is_single_active_consumer))
        {
            let text = format!("{resource} in exclusive use");
            return Err(caller.fault(ReplyCode::AccessRefused, text));
        }
        Ok(())
    }

    /// Unacknowledged deliveries of the consumer stay with its channel.
    pub(super) fn handle_cancel(
        &mut self,
        now: Time,
        context: &Context,
        method: &BasicCancel<'_>,
        out: &mut dyn Outbox<H>,
    ) -> Result<(), Fault> {
        let (key, tag) = (context.channel, method.consumer_tag);
        let mut left = self.consumers.cancel(key, tag);
        self.channels.cancel_reply_consumer(key, tag);
        if let Some(left) = &mut left {
            self.note_left(now, left);
        }
        let ok = BasicCancelOk { consumer_tag: tag };
        self.answer(key, method.no_wait, ok, out)?;
        if let Some(left) = left {
            // The queue may have to be deleted, and another consumer may be active now.
            self.remove_if_unused(left.consumer.queue, out);
            self.deliver(now, left.consumer.queue, out);
        }
        Ok(())
    }

    /// Handles the departure of a consumer from its queue.
    pub(super) fn note_left(&mut self, now: Time, left: &mut Left) {
        if let Some(reader) = &mut left.consumer.reader {
            reader.end(&mut self.ledger);
        }
        let consumer = &left.consumer;
        self.channels
            .remove_consumer(consumer.channel, &consumer.tag);
        if left.is_last {
            self.queues.touch(now, consumer.queue, false);
        }
    }

    /// Tells a consumer that its queue was deleted, if its client supports that.
    pub(super) fn tell_cancelled(&mut self, consumer: &mut Consumer, out: &mut dyn Outbox<H>) {
        if let Some(reader) = &mut consumer.reader {
            reader.end(&mut self.ledger);
        }
        self.channels
            .remove_consumer(consumer.channel, &consumer.tag);
        let Some((channel, connection)) = self.channels.both(consumer.channel) else {
            return;
        };
        if connection.client.consumer_cancel_notify && !channel.is_closing {
            let cancel = BasicCancel {
                consumer_tag: &consumer.tag,
                no_wait: true,
            };
            self.channels.send(consumer.channel, cancel, out);
        }
    }

    /// Deletes an auto-delete queue after its last consumer.
    pub(super) fn remove_if_unused(&mut self, key: QueueKey, out: &mut dyn Outbox<H>) {
        let queue = self.queues.find(key);
        if queue.is_some_and(|queue| queue.flags.auto_delete) && self.consumers.have_left(key) {
            self.remove_queue(key, out);
        }
    }

    pub(super) fn handle_qos(
        &mut self,
        now: Time,
        context: &Context,
        method: &BasicQos,
        out: &mut dyn Outbox<H>,
    ) -> Result<(), Fault> {
        if method.prefetch_size != 0 {
            let text = format!("prefetch_size!=0 ({})", method.prefetch_size);
            return Err(context.caller().fault(ReplyCode::NotImplemented, text));
        }
        let key = context.channel;
        let transaction = self.transactions.find(key);
        let held = transaction.map_or(0, |tx| tx.acknowledged());
        self.channels.limit(key, method, held);
        let channel = self.channels.find(key);
        if self.consumers.is_waiting(key) && channel.is_some_and(|c| !c.is_at_limit()) {
            self.channels
                .look_for_room(Time(now.0 + ROOM_AFTER_MS), key);
        }
        self.answer(key, false, BasicQosOk {}, out)
    }

    /// Delivers what a higher limit allows, some time after it was set.
    pub(super) fn handle_room(&mut self, now: Time, key: ChannelKey, out: &mut dyn Outbox<H>) {
        self.channels.room_was_looked_for(key);
        self.serve_waiting(now, key, out);
    }
}

/// Delay of the deliveries that a higher limit allows, after its `basic.qos-ok`. kombu's event loop reads what follows
/// an answer, and then sleeps until a timer of its own, two seconds later, before it raises the limit again. Celery's
/// workers do that for each task that is due later. RabbitMQ's deliveries come from another process than the answer,
/// mostly late enough to wake the loop. A task behind 100 that were due later was begun after 10 s without this delay.
const ROOM_AFTER_MS: u64 = 5;

/// The start of a consumer in a stream; queues have none.
pub(super) const STREAM_OFFSET: &str = "x-stream-offset";

/// The priority of a consumer, 0 by default: higher ones are served first while they have room.
pub(super) const PRIORITY: &str = "x-priority";

/// The text of a fault: the queue's type does not know that argument.
pub(super) fn invalid_argument(name: &str, resource: Resource<'_>, queue: &Queue) -> String {
    let module = queue.settings.kind.module();
    format!("invalid arg '{name}' for {resource} of queue type {module}")
}

fn priority(caller: &Caller<'_>, queue: Resource<'_>, arguments: Table<'_>) -> Result<i64, Fault> {
    let Some(value) = arguments.find(PRIORITY) else {
        return Ok(0);
    };
    integer(value).map_err(|reason| {
        caller.precondition_failed(format!("invalid arg '{PRIORITY}' for {queue}: {reason}"))
    })
}
