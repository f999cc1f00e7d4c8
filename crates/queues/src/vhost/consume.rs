//! Consumers come and go, and say how much they take.

use std::cmp::Reverse;
use std::sync::Arc;

use crosstie_amqp::method::{
    BasicCancel, BasicCancelOk, BasicConsume, BasicConsumeOk, BasicQos, BasicQosOk,
};
use crosstie_amqp::{ReplyCode, Table};
use crosstie_auth::Access;

use super::Vhost;
use super::charges::CONSUMER_BYTES;
use super::methods::Context;
use crate::channel::{Consumer, Turn};
use crate::group::Group;
use crate::keys::ConsumerKey;
use crate::timers::Timer;
use crate::topology::{Caller, Resource, integer};
use crate::{ChannelKey, ConnectionKey, Fault, Outbox, QueueKey, Time};

impl<H> Vhost<H> {
    pub(super) fn handle_consume(
        &mut self,
        now: Time,
        context: &Context,
        method: &BasicConsume<'_>,
        out: &mut dyn Outbox<H>,
    ) -> Result<(), Fault> {
        let caller = context.caller();
        if self.handle_reply_consume(context, method, out)? {
            return Ok(());
        }
        let Some(channel) = self.channels.find(context.channel) else {
            return Ok(());
        };
        if channel.has_consumer(method.consumer_tag) {
            let text = format!("attempt to reuse consumer tag '{}'", method.consumer_tag);
            return Err(caller.fault(ReplyCode::NotAllowed, text));
        }
        let consumers_max = self.config.limits.consumers_max;
        if channel.consumers.len() >= consumers_max {
            return Err(caller.precondition_failed(format!(
                "consumer limit of the channel ({consumers_max}) is reached"
            )));
        }
        let prefetch_count_global = channel.prefetch_count_global;
        let connection_consumers_max = self.config.limits.connection_consumers_max;
        let connection = self.connections.find(channel.connection);
        if connection.is_some_and(|c| c.consumers >= connection_consumers_max) {
            return Err(caller.precondition_failed(format!(
                "consumer limit of the connection ({connection_consumers_max}) is reached"
            )));
        }
        let name = self.queue_name(context, method.queue, out)?;
        let vhost = self.config.name.clone();
        let resource = Resource::queue(&name, &vhost);
        caller.check(Access::Read, resource)?;
        let key = self.find_queue(context, &name)?;
        let priority = priority(&caller, resource, method.arguments)?;
        let tag = match method.consumer_tag {
            "" => self.random.name("amq.ctag-"),
            tag => tag.into(),
        };
        let Some(queue) = self.queues.find_mut(key) else {
            return Ok(());
        };
        if method.arguments.find(STREAM_OFFSET).is_some() {
            return Err(caller.precondition_failed(format!(
                "invalid arg '{STREAM_OFFSET}' for {resource} of queue type {}",
                queue.settings.kind.module()
            )));
        }
        if queue.is_quorum() && prefetch_count_global != 0 {
            let text = format!("{resource} does not support global qos");
            return Err(caller.fault(ReplyCode::NotImplemented, text));
        }
        let settings = &queue.settings;
        if queue.exclusive_consumer.is_some()
            || (method.exclusive
                && (!queue.consumers.is_empty() || settings.is_single_active_consumer))
        {
            let text = format!("{resource} in exclusive use");
            return Err(caller.fault(ReplyCode::AccessRefused, text));
        }
        self.add_consumer(context.channel, key, (tag.clone(), priority), method);
        let ok = BasicConsumeOk { consumer_tag: &tag };
        self.answer(context.channel, method.no_wait, ok, out)?;
        self.deliver(now, key, out);
        Ok(())
    }

    fn add_consumer(
        &mut self,
        channel_key: ChannelKey,
        queue_key: QueueKey,
        (tag, priority): (Arc<str>, i64),
        method: &BasicConsume<'_>,
    ) {
        let Some(channel) = self.channels.find_mut(channel_key) else {
            return;
        };
        let Some(queue) = self.queues.find_mut(queue_key) else {
            return;
        };
        let group = channel.groups.entry(queue_key);
        let group =
            *group.or_insert_with(|| self.groups.insert(Group::new(channel_key, queue_key)));
        if let Some(group) = self.groups.find_mut(group) {
            group.consumers += 1;
        }
        let seat = queue.rank_behind(Reverse(priority));
        let key = self.consumers.insert(Consumer {
            channel: channel_key,
            queue: queue_key,
            tag: tag.clone(),
            group,
            seat,
            rank: seat,
            no_ack: method.no_ack,
            is_exclusive: method.exclusive,
            prefetch_count: channel.prefetch_count,
            unacked: 0,
            turn: Turn::Inactive,
        });
        let bytes = consumer_bytes(&tag);
        channel.consumers.insert(tag, key);
        queue.consumers.insert(seat, key);
        queue.had_consumer = true;
        if method.exclusive {
            queue.exclusive_consumer = Some(key);
        }
        let is_single = queue.settings.is_single_active_consumer;
        let is_next = !is_single || queue.active_consumer.is_none();
        if is_next {
            queue.active_consumer = is_single.then_some(key);
        }
        let connection = channel.connection;
        self.count_consumer(connection, bytes, true);
        if is_next {
            self.line_up(key);
        }
    }

    /// What the consumer has not acknowledged stays with its channel.
    pub(super) fn handle_cancel(
        &mut self,
        now: Time,
        context: &Context,
        method: &BasicCancel<'_>,
        out: &mut dyn Outbox<H>,
    ) -> Result<(), Fault> {
        let Some(channel) = self.channels.find_mut(context.channel) else {
            return Ok(());
        };
        let removed = channel.consumers.remove(method.consumer_tag);
        channel
            .reply_consumer
            .take_if(|reply| *reply.tag == *method.consumer_tag);
        let queue = removed.and_then(|consumer| self.remove_consumer(now, consumer));
        let ok = BasicCancelOk {
            consumer_tag: method.consumer_tag,
        };
        self.answer(context.channel, method.no_wait, ok, out)?;
        if let Some(queue) = queue {
            self.remove_if_unused(queue, out);
            self.deliver(now, queue, out);
        }
        Ok(())
    }

    /// A consumer leaves its queue, which is returned: it may have to be deleted, and another may
    /// be the active one now.
    pub(super) fn remove_consumer(&mut self, now: Time, key: ConsumerKey) -> Option<QueueKey> {
        let removed = self.consumers.remove(key)?;
        self.leave_group(&removed);
        self.uncount_consumer(&removed);
        let queue = self.queues.find_mut(removed.queue)?;
        queue.consumers.remove(removed.seat);
        queue
            .exclusive_consumer
            .take_if(|consumer| *consumer == key);
        let is_last = queue.consumers.is_empty();
        if queue.active_consumer == Some(key) {
            let next = queue.consumers.first().map(|(_, next)| next);
            queue.active_consumer = next;
            if let Some(next) = next {
                self.line_up(next);
            }
        }
        if is_last {
            self.touch(now, removed.queue);
        }
        Some(removed.queue)
    }

    /// A consumer's queue has gone before it. It is told, if it likes.
    pub(super) fn lose_queue(&mut self, key: ConsumerKey, out: &mut dyn Outbox<H>) {
        let Some(consumer) = self.consumers.remove(key) else {
            return;
        };
        self.leave_group(&consumer);
        self.uncount_consumer(&consumer);
        let Some(channel) = self.channels.find_mut(consumer.channel) else {
            return;
        };
        channel.consumers.remove(&consumer.tag);
        let Some(connection) = self.connections.find(channel.connection) else {
            return;
        };
        if connection.client.consumer_cancel_notify && !channel.is_closing {
            let cancel = BasicCancel {
                consumer_tag: &consumer.tag,
                no_wait: true,
            };
            out.send(&connection.handle, channel.number, &cancel.into());
        }
    }

    /// Of a consumer that is gone, when its channel is there still.
    fn uncount_consumer(&mut self, consumer: &Consumer) {
        if let Some(channel) = self.channels.find(consumer.channel) {
            let connection = channel.connection;
            self.count_consumer(connection, -consumer_bytes(&consumer.tag), false);
        }
    }

    fn count_consumer(&mut self, key: ConnectionKey, bytes: isize, is_more: bool) {
        if let Some(connection) = self.connections.find_mut(key) {
            match is_more {
                true => connection.consumers += 1,
                false => connection.consumers -= 1,
            }
        }
        self.charge(key, bytes);
    }

    /// An auto-delete queue goes with its last consumer.
    pub(super) fn remove_if_unused(&mut self, key: QueueKey, out: &mut dyn Outbox<H>) {
        let is_unused = self.queues.find(key).is_some_and(|queue| {
            queue.flags.auto_delete && queue.had_consumer && queue.consumers.is_empty()
        });
        if is_unused {
            self.remove_queue(key, out);
        }
    }

    /// As RabbitMQ has it: `global` is the channel's consumers together, and what `basic.get` has
    /// been given by then; else each to come, and the channel has no limit any more.
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
        let Some(channel) = self.channels.find_mut(context.channel) else {
            return Ok(());
        };
        if !method.global {
            channel.prefetch_count = method.prefetch_count;
        }
        let before = channel.prefetch_count_global;
        channel.prefetch_count_global = match method.global {
            true => method.prefetch_count,
            false => 0,
        };
        if before == 0 && channel.prefetch_count_global != 0 {
            let held = channel
                .transaction
                .as_ref()
                .map_or(0, |tx| tx.acknowledged());
            channel.prefetched = channel.unacked.len() + held;
            channel.limited_at = channel.last_tag;
        }
        let has_room = !channel.waiting.is_empty() && !channel.is_at_limit();
        if has_room && !channel.has_room_timer {
            channel.has_room_timer = true;
            self.set_timer(Time(now.0 + ROOM_AFTER_MS), Timer::Room(context.channel));
        }
        self.answer(context.channel, false, BasicQosOk {}, out)
    }

    /// Some time after a higher limit was set: what there is room for is given.
    pub(super) fn handle_room(&mut self, now: Time, key: ChannelKey, out: &mut dyn Outbox<H>) {
        let Some(channel) = self.channels.find_mut(key) else {
            return;
        };
        channel.has_room_timer = false;
        self.serve_waiting(now, key, out);
    }
}

pub(super) fn consumer_bytes(tag: &str) -> isize {
    CONSUMER_BYTES + tag.len() as isize
}

/// What a higher limit makes room for comes so long after its `basic.qos-ok`. kombu's event loop reads
/// what follows an answer and then sleeps until a timer of its own, two seconds later, before it
/// raises the limit again, as Celery's workers do for each task that is due later. RabbitMQ's
/// deliveries come from another process than the answer, mostly late enough for the loop to be
/// woken by them. A task behind 100 that were due later was begun after 10 s without this time.
const ROOM_AFTER_MS: u64 = 5;

/// Where a consumer begins in a stream; queues have no such places.
const STREAM_OFFSET: &str = "x-stream-offset";

/// Consumers with a higher one go first while they take messages; none is 0.
const PRIORITY: &str = "x-priority";

fn priority(caller: &Caller<'_>, queue: Resource<'_>, arguments: Table<'_>) -> Result<i64, Fault> {
    let Some(value) = arguments.find(PRIORITY) else {
        return Ok(0);
    };
    integer(value).map_err(|reason| {
        caller.precondition_failed(format!("invalid arg '{PRIORITY}' for {queue}: {reason}"))
    })
}
