//! The arrival of a message at a queue.

use super::{Arrival, Entry, Incoming, Queues};
use crate::confirms::Confirms;
use crate::ledger::Ledger;
use crate::topology::Overflow;
use crate::{Position, QueueKey, Time};

impl Queues {
    /// A queue's decision on an arriving message.
    #[inline]
    pub(crate) fn arrive(
        &mut self,
        now: Time,
        key: QueueKey,
        incoming: &mut Incoming<'_>,
        ledger: &mut Ledger,
        confirms: &mut Confirms,
    ) -> Arrival {
        let Some(queue) = self.queues.find_mut(key) else {
            return Arrival::Nowhere;
        };
        ledger.steps.spend(1);
        if queue.rejects(incoming.body.len()) {
            if matches!(queue.settings.overflow, Overflow::RejectPublishDeadLetter) {
                self.dead.reject(queue, incoming.content(), ledger);
            }
            return Arrival::Rejected;
        }
        let handling = incoming.handling;
        let is_stored = queue.id.is_some() && (handling.is_persistent || queue.is_quorum());
        let ttl_ms = match (queue.settings.message_ttl_ms, handling.ttl_ms) {
            (Some(queue), Some(message)) => Some(queue.min(message)),
            (queue, message) => queue.or(message),
        };
        let expires_at = ttl_ms.map(|ttl_ms| Time(now.0.saturating_add(ttl_ms)));
        let is_next = match queue.messages.front() {
            None => queue.returning == 0,
            Some(first) if first.is_expired(now) => {
                self.drop_expired(now, key, ledger, confirms);
                self.is_idle(key)
            }
            Some(_) => false,
        };
        Arrival::Taken {
            is_next,
            is_stored,
            expires_at,
        }
    }

    /// Makes the entry of a message that a queue has accepted; `is_sent`: a consumer has been sent it already. The
    /// position is that of its record, if it is to be stored.
    #[inline]
    pub(crate) fn keep(
        &mut self,
        key: QueueKey,
        (is_stored, is_sent): (bool, bool),
        expires_at: Option<Time>,
        incoming: &mut Incoming<'_>,
        ledger: &mut Ledger,
    ) -> Option<(Entry, Option<Position>)> {
        let queue = self.queues.find_mut(key)?;
        let entry = Entry {
            content: incoming.content(),
            place: queue.take_place(),
            expires_at,
            deliveries: 0,
            level: queue.level(incoming.properties),
            is_redelivered: false,
            is_stored,
        };
        let mut position = None;
        if let Some(id) = queue.id.filter(|_| is_stored) {
            let mut record = entry.record(id);
            if is_sent && queue.is_quorum() {
                record.count_delivery();
            }
            ledger.record(record);
            position = Some(ledger.journal.position);
        }
        ledger.account(&entry);
        Some((entry, position))
    }

    /// Puts a message in its queue, behind all others of its priority, if there is room.
    #[inline]
    pub(crate) fn push(
        &mut self,
        now: Time,
        key: QueueKey,
        entry: Entry,
        ledger: &mut Ledger,
        confirms: &mut Confirms,
    ) {
        if let Some(queue) = self.queues.find_mut(key) {
            queue.push(entry);
            if queue.overflows() {
                self.drop_overflow(key, ledger, confirms);
            }
        }
        self.drop_expired(now, key, ledger, confirms);
        self.set_head_timer(key);
    }

    /// Whether no message waits in the queue or is being returned to it.
    fn is_idle(&self, key: QueueKey) -> bool {
        let queue = self.queues.find(key);
        queue.is_some_and(|queue| queue.messages.is_empty() && queue.returning == 0)
    }
}
