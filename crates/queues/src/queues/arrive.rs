//! The arrival of a message at a queue.

use super::{Entry, Incoming, Queue, Queues};
use crate::confirms::Confirms;
use crate::ledger::Ledger;
use crate::topology::Overflow;
use crate::{Position, QueueKey, Time};

impl Queues {
    /// The queue that a message arrives at: looked up once, as every message passes here.
    #[inline]
    pub(crate) fn find_mut(&mut self, key: QueueKey) -> Option<&mut Queue> {
        self.queues.find_mut(key)
    }

    /// A queue rejects a message, which may become a dead letter.
    #[cold]
    pub(crate) fn reject(
        &mut self,
        key: QueueKey,
        incoming: &mut Incoming<'_>,
        ledger: &mut Ledger,
    ) {
        if let Some(queue) = self.queues.find(key)
            && matches!(queue.settings.overflow, Overflow::RejectPublishDeadLetter)
        {
            self.dead.reject(queue, incoming.content(), ledger);
        }
    }

    /// Restores the bounds of a queue after an arrival, and sets the timer for its first message.
    #[inline(never)]
    pub(crate) fn trim(
        &mut self,
        now: Time,
        key: QueueKey,
        ledger: &mut Ledger,
        confirms: &mut Confirms,
    ) {
        self.drop_overflow(key, ledger, confirms);
        self.drop_expired(now, key, ledger, confirms);
        self.set_head_timer(key);
    }
}

impl Queue {
    #[inline]
    pub(crate) fn has_expired(&self, now: Time) -> bool {
        let first = self.messages.front();
        first.is_some_and(|first| first.is_expired(now))
    }

    /// Whether an arriving message may be sent straight to a consumer: no other waits or is being returned.
    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        self.messages.is_empty() && self.returning == 0
    }

    /// Makes the entry of an accepted message; `is_sent`: a consumer has been sent it already. The position is that of
    /// its record, if it is to be stored.
    #[inline]
    pub(crate) fn keep(
        &mut self,
        now: Time,
        incoming: &mut Incoming<'_>,
        is_sent: bool,
        ledger: &mut Ledger,
    ) -> (Entry, Option<Position>) {
        let handling = incoming.handling;
        let id = self
            .id
            .filter(|_| handling.is_persistent || self.is_quorum());
        let ttl_ms = match (self.settings.message_ttl_ms, handling.ttl_ms) {
            (Some(queue), Some(message)) => Some(queue.min(message)),
            (queue, message) => queue.or(message),
        };
        let level = self.level(incoming.properties);
        let entry = Entry {
            content: incoming.content(),
            place: self.take_place(level),
            expires_at: ttl_ms.map(|ttl_ms| Time(now.0.saturating_add(ttl_ms))),
            deliveries: 0,
            level,
            is_redelivered: false,
            is_stored: id.is_some(),
            is_spilled: false,
        };
        let mut position = None;
        if let Some(id) = id {
            let mut record = entry.record(id);
            if is_sent && self.is_quorum() {
                record.count_delivery();
            }
            ledger.record(record);
            position = Some(ledger.journal.position);
        }
        ledger.account(&entry);
        (entry, position)
    }

    /// Whether [`Queues::trim`] has something to do.
    #[inline]
    pub(crate) fn needs_trim(&self) -> bool {
        let first = self.messages.front();
        self.overflows() || first.is_some_and(|first| first.expires_at.is_some())
    }
}
