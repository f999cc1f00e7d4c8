//! The arrival of a message at a queue: straight to a consumer, or into the line.

use super::Vhost;
use super::deliver::send;
use crate::channels::Delivery;
use crate::consumers::Sent;
use crate::queues::{Enqueued, Incoming};
use crate::{Outbox, QueueKey, Time};

impl<H> Vhost<H> {
    pub(super) fn enqueue(
        &mut self,
        now: Time,
        key: QueueKey,
        incoming: &mut Incoming<'_>,
        out: &mut dyn Outbox<H>,
    ) -> Enqueued {
        let Some(mut queue) = self.queues.find_mut(key) else {
            return Enqueued::Taken;
        };
        self.ledger.steps.spend(1);
        queue.counters.published += 1;
        if queue.is_stream() {
            return self.append(now, key, incoming);
        }
        if queue.rejects(incoming.body.len()) {
            self.queues.reject(key, incoming, &mut self.ledger);
            return Enqueued::Rejected;
        }
        let mut is_next = queue.is_idle();
        if !is_next && queue.has_expired(now) {
            self.drop_expired(now, key);
            match self.queues.find_mut(key) {
                Some(found) => queue = found,
                None => return Enqueued::Taken,
            }
            is_next = queue.is_idle();
        }
        let (consumers, channels) = (&mut self.consumers, &mut self.channels);
        let mut sent = None;
        // The first consumer that accepts it is sent it, before the queue keeps it.
        while is_next
            && sent.is_none()
            && let Some(next) = consumers.next(key, channels, &mut self.ledger.steps)
        {
            let rooms = (&mut *consumers, &mut *channels, &mut self.ledger);
            sent = send(next, &incoming.outgoing(), rooms, out).ok();
        }
        if let Some(sent) = sent
            && !queue.note_sent(sent.needs_ack, &mut self.ledger)
        {
            self.trace_direct(sent, key, incoming, out);
            return Enqueued::Taken;
        }
        let (entry, position) = queue.keep(now, incoming, sent.is_some(), &mut self.ledger);
        match sent {
            Some(sent) => {
                queue.unacknowledged += 1;
                let delivery = Delivery::new(key, Some(sent.consumer), now, entry);
                channels.hold(sent.channel, sent.tag, delivery);
                self.trace_direct(sent, key, incoming, out);
            }
            None => {
                queue.note_arrival(now, &entry);
                queue.push(entry, &mut self.ledger);
                let is_deep = queue.is_deep();
                if queue.needs_trim() {
                    self.queues
                        .trim(now, key, &mut self.ledger, &mut self.confirms);
                }
                if is_deep || self.queues.are_many(&self.ledger) {
                    self.queues.deepen(key, &self.ledger);
                }
            }
        }
        position.map_or(Enqueued::Taken, Enqueued::Stored)
    }

    /// Copies a message that a consumer was sent before the queue kept it, while messages are traced.
    #[inline(always)]
    fn trace_direct(
        &mut self,
        sent: Sent,
        queue: QueueKey,
        incoming: &Incoming<'_>,
        out: &dyn Outbox<H>,
    ) {
        if self.tracing.is_some() {
            self.trace_delivered(sent.channel, queue, &incoming.outgoing(), out);
        }
    }
}
