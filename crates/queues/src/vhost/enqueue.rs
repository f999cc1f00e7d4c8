//! The arrival of a message at a queue: straight to a consumer, or into the line.

use super::Vhost;
use crate::consumers::Sent;
use crate::queues::{Arrival, Enqueued, Incoming};
use crate::{Outbox, QueueKey, Time};

impl<H> Vhost<H> {
    pub(super) fn enqueue(
        &mut self,
        now: Time,
        key: QueueKey,
        incoming: &mut Incoming<'_>,
        out: &mut dyn Outbox<H>,
    ) -> Enqueued {
        let arrival = self
            .queues
            .arrive(now, key, incoming, &mut self.ledger, &mut self.confirms);
        let (is_next, is_stored, expires_at) = match arrival {
            Arrival::Nowhere => return Enqueued::Taken,
            Arrival::Rejected => return Enqueued::Rejected,
            Arrival::Taken {
                is_next,
                is_stored,
                expires_at,
            } => (is_next, is_stored, expires_at),
        };
        let sent = match is_next {
            true => self.pass_on(key, incoming, out),
            false => None,
        };
        if sent.is_some_and(|sent| !sent.needs_ack) {
            return Enqueued::Taken;
        }
        let kept = self.queues.keep(
            key,
            (is_stored, sent.is_some()),
            expires_at,
            incoming,
            &mut self.ledger,
        );
        let Some((entry, position)) = kept else {
            return Enqueued::Taken;
        };
        match sent {
            Some(sent) => self.hold(now, key, sent, entry),
            None => self
                .queues
                .push(now, key, entry, &mut self.ledger, &mut self.confirms),
        }
        position.map_or(Enqueued::Taken, Enqueued::Stored)
    }

    /// Sends a message to the first consumer that accepts it, before any queue keeps it.
    #[inline(always)]
    fn pass_on(
        &mut self,
        key: QueueKey,
        incoming: &Incoming<'_>,
        out: &mut dyn Outbox<H>,
    ) -> Option<Sent> {
        while let Some(next) = self.next_consumer(key) {
            if let Ok(sent) = self.send(next, &incoming.sending(), out) {
                return Some(sent);
            }
        }
        None
    }
}
