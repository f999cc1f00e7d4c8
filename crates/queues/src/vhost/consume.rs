//! Consumers come and go, and say how much they take.

use crosstie_amqp::ReplyCode;
use crosstie_amqp::method::{
    BasicCancel, BasicCancelOk, BasicConsume, BasicConsumeOk, BasicQos, BasicQosOk,
};
use crosstie_auth::Access;

use super::Vhost;
use super::methods::Context;
use crate::channel::{Consumer, Turn};
use crate::keys::ConsumerKey;
use crate::topology::Resource;
use crate::{Fault, Outbox, QueueKey, Time};

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
        let (prefetch_count, prefetch_count_global) =
            (channel.prefetch_count, channel.prefetch_count_global);
        let name = self.queue_name(context, method.queue)?;
        let vhost = self.config.name.clone();
        let resource = Resource::queue(&name, &vhost);
        caller.check(Access::Read, resource)?;
        let key = self.find_queue(context, &name)?;
        if method.arguments.find("x-priority").is_some() {
            let text = format!("consumer priorities (x-priority) for {resource}");
            return Err(caller.fault(ReplyCode::NotImplemented, text));
        }
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
        let is_waiting = settings.is_single_active_consumer && queue.active_consumer.is_some();
        let consumer = self.consumers.insert(Consumer {
            channel: context.channel,
            queue: key,
            tag: tag.clone(),
            no_ack: method.no_ack,
            is_exclusive: method.exclusive,
            prefetch_count,
            unacked: 0,
            turn: match is_waiting {
                true => Turn::Inactive,
                false => Turn::InLine,
            },
        });
        queue.had_consumer = true;
        queue.consumers.push(consumer);
        if method.exclusive {
            queue.exclusive_consumer = Some(consumer);
        }
        if !is_waiting {
            queue.ready.push_back(consumer);
            if queue.settings.is_single_active_consumer {
                queue.active_consumer = Some(consumer);
            }
        }
        if let Some(channel) = self.channels.find_mut(context.channel) {
            channel.consumers.insert(tag.clone(), consumer);
        }
        let ok = BasicConsumeOk { consumer_tag: &tag };
        self.answer(context.channel, method.no_wait, ok, out)?;
        self.deliver(now, key, out);
        Ok(())
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
        let queue = self.queues.find_mut(removed.queue)?;
        queue.consumers.retain(|consumer| *consumer != key);
        queue.ready.retain(|consumer| *consumer != key);
        queue
            .exclusive_consumer
            .take_if(|consumer| *consumer == key);
        if queue.active_consumer == Some(key) {
            queue.active_consumer = queue.consumers.first().copied();
            if let Some(next) = queue.active_consumer
                && let Some(consumer) = self.consumers.find_mut(next)
            {
                consumer.turn = Turn::InLine;
                queue.ready.push_back(next);
            }
        }
        if queue.consumers.is_empty() {
            self.touch(now, removed.queue);
        }
        Some(removed.queue)
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
            channel.prefetched += channel.unacked.count_all();
        }
        let is_changed = before != channel.prefetch_count_global;
        self.answer(context.channel, false, BasicQosOk {}, out)?;
        if is_changed {
            self.unblock_all(now, context.channel, out);
        }
        Ok(())
    }
}

/// Where a consumer begins in a stream; queues have no such places.
const STREAM_OFFSET: &str = "x-stream-offset";
