//! `basic.get`: a message on request.

use crosstie_amqp::ReplyCode;
use crosstie_amqp::method::{BasicGet, BasicGetEmpty, BasicGetOk};

use super::Vhost;
use super::methods::Context;
use crate::channels::{Delivery, Outgoing};
use crate::queues::{Entry, Popped};
use crate::topology::Resource;
use crate::{ChannelKey, Fault, Outbox, QueueKey, Refused, Time};

impl<H> Vhost<H> {
    pub(super) fn handle_get(
        &mut self,
        now: Time,
        context: &Context,
        method: &BasicGet<'_>,
        out: &mut dyn Outbox<H>,
    ) -> Result<(), Fault> {
        let key = self.readable_queue(context, method.queue, out)?;
        self.check_no_stream(context.method, key, "basic.get")?;
        self.check_gettable(context, key)?;
        self.touch(now, key);
        self.drop_expired(now, key);
        let Some(popped) = self.queues.pop_unexpired(now, key) else {
            if self.queues.find(key).is_none() {
                return Ok(());
            }
            self.queues.count_got_empty(key, &mut self.ledger);
            self.channels
                .count(context.channel, |counts| counts.got_empty += 1);
            let empty = BasicGetEmpty { cluster_id: "" };
            return self.answer(context.channel, false, empty, out);
        };
        let Popped {
            entry,
            is_quorum,
            waited_ms,
        } = popped;
        // Expired messages behind it do not count.
        self.drop_expired(now, key);
        match self.send_got(context.channel, key, &entry, is_quorum, out) {
            // The connection refused a message that it requested, and cannot be answered otherwise: it is closed. The
            // message stays.
            Err(_) => self.queues.insert(key, entry, &self.ledger),
            Ok(_) if method.no_ack => {
                self.ledger.waits.note(waited_ms);
                self.count_got(context.channel, key, &entry, true);
                self.forget(key, &entry);
            }
            Ok(tag) => {
                self.ledger.waits.note(waited_ms);
                if is_quorum {
                    self.queues.count_delivery(key, &entry, &mut self.ledger);
                }
                self.count_got(context.channel, key, &entry, false);
                let delivery = Delivery::new(key, None, now, entry);
                self.channels.hold(context.channel, tag, delivery);
            }
        }
        self.queues.set_head_timer(key);
        Ok(())
    }

    /// Checks that a queue can be read with `basic.get`.
    fn check_gettable(&self, context: &Context, key: QueueKey) -> Result<(), Fault> {
        match self.queues.find(key) {
            Some(queue) if queue.is_quorum() && queue.settings.is_single_active_consumer => {
                let text = format!(
                    "cannot obtain access to locked {}. basic.get operations are not supported by \
                     quorum queues with single active consumer",
                    Resource::queue(&queue.name, &self.config.name)
                );
                Err(context.caller().fault(ReplyCode::ResourceLocked, text))
            }
            _ => Ok(()),
        }
    }

    fn count_got(&mut self, channel: ChannelKey, queue: QueueKey, entry: &Entry, no_ack: bool) {
        let is_redelivered = entry.is_redelivered;
        self.queues
            .count_got(queue, no_ack, is_redelivered, &mut self.ledger);
        self.channels
            .count(channel, |counts| counts.count_got(no_ack, is_redelivered));
    }

    /// Returns its delivery tag.
    fn send_got(
        &mut self,
        key: ChannelKey,
        queue: QueueKey,
        entry: &Entry,
        is_quorum: bool,
        out: &mut dyn Outbox<H>,
    ) -> Result<u64, Refused> {
        let mut counted = Vec::new();
        let mut outgoing = Outgoing::of(entry);
        if is_quorum {
            outgoing = outgoing.with_delivery_count(entry.deliveries, &mut counted);
        }
        let channel = self.channels.find(key).ok_or(Refused::Gone)?;
        let ok = BasicGetOk {
            delivery_tag: channel.last_tag + 1,
            redelivered: outgoing.is_redelivered,
            exchange: outgoing.exchange,
            routing_key: outgoing.routing_key,
            message_count: self.queues.ready_count(queue) as u32,
        };
        self.channels.send_owed(key, ok, &outgoing, out)?;
        if self.tracing.is_some() {
            self.trace_delivered(key, queue, &outgoing, out);
        }
        self.channels.take_tag(key).ok_or(Refused::Gone)
    }
}
