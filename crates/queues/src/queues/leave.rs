//! A message leaves its queue: sent, forgotten, dead; or comes back to it.

use super::{Entry, Queue, Queues, Reason};
use crate::confirms::Confirms;
use crate::ledger::Ledger;
use crate::{QueueKey, Record, Time};

/// Messages go.
impl Queues {
    /// Whether a queue has a message that somebody may be sent.
    #[inline]
    pub(crate) fn is_ready(&self, key: QueueKey) -> bool {
        let queue = self.queues.find(key);
        queue.is_some_and(|queue| !queue.messages.is_empty() && queue.returning == 0)
    }

    /// Takes the first message out, which is sent, or inserted again. `is_quorum`: how often it came
    /// back is told.
    #[inline]
    pub(crate) fn pop(&mut self, key: QueueKey) -> Option<(Entry, bool)> {
        let queue = self.queues.find_mut(key)?;
        Some((queue.pop()?, queue.is_quorum()))
    }

    /// The same for `basic.get`, if the first one has not expired: while many expire there may be
    /// others behind them.
    pub(crate) fn pop_unexpired(&mut self, now: Time, key: QueueKey) -> Option<(Entry, bool)> {
        let queue = self.queues.find_mut(key)?;
        queue.messages.front().filter(|e| !e.is_expired(now))?;
        Some((queue.pop()?, queue.is_quorum()))
    }

    /// A message goes back to its place.
    pub(crate) fn insert(&mut self, key: QueueKey, entry: Entry) {
        if let Some(queue) = self.queues.find_mut(key) {
            queue.insert(entry);
        }
    }

    /// A channel holds a message of that queue.
    #[inline]
    pub(crate) fn hold_one(&mut self, key: QueueKey) {
        if let Some(queue) = self.queues.find_mut(key) {
            queue.unacknowledged += 1;
        }
    }

    /// It does not any more.
    #[inline(always)]
    pub(crate) fn settle_one(&mut self, key: QueueKey) {
        if let Some(queue) = self.queues.find_mut(key) {
            queue.unacknowledged = queue.unacknowledged.saturating_sub(1);
        }
    }

    /// A message is done with: for this queue it does not exist any more.
    #[inline]
    pub(crate) fn forget(
        &self,
        key: QueueKey,
        entry: &Entry,
        ledger: &mut Ledger,
        confirms: &mut Confirms,
    ) {
        if entry.is_stored {
            self.forget_stored(key, entry, ledger, confirms);
        }
        ledger.release(entry);
    }

    /// Apart, so that the rest is small enough to be a part of its callers.
    #[inline(never)]
    fn forget_stored(
        &self,
        key: QueueKey,
        entry: &Entry,
        ledger: &mut Ledger,
        confirms: &mut Confirms,
    ) {
        if let Some(queue) = self.queues.find(key).and_then(|queue| queue.id) {
            let place = entry.place;
            ledger.record(Record::Dequeued { queue, place });
            confirms.forgotten(&entry.content);
        }
    }

    /// A message has left a queue (or a channel) for that reason: it goes where the queue's dead
    /// letters go, or nowhere.
    pub(crate) fn die(
        &mut self,
        key: QueueKey,
        entry: Entry,
        reason: Reason,
        ledger: &mut Ledger,
        confirms: &mut Confirms,
    ) {
        let queue = self.queues.find(key);
        let queue = queue.filter(|queue| queue.settings.dead_letter_exchange.is_some());
        let Some(queue) = queue else {
            ledger.counts.dropped += u64::from(reason != Reason::Expired);
            return self.forget(key, &entry, ledger, confirms);
        };
        self.dead.die(queue, entry, reason);
    }
}

/// Messages come back.
impl Queues {
    /// Records a delivery of a quorum queue at once, so that it counts if the node ends before the consumer
    /// acknowledges or rejects the message.
    pub(crate) fn count_delivery(&self, key: QueueKey, entry: &Entry, ledger: &mut Ledger) {
        if let Some(queue) = self.queues.find(key).and_then(|queue| queue.id)
            && entry.is_stored
        {
            ledger.record(Record::Delivered {
                queue,
                place: entry.place,
                deliveries: entry.deliveries.saturating_add(1),
            });
        }
    }

    /// Messages of a queue are about to come back: no consumer is sent any until all are there. Whether
    /// there is such a queue.
    pub(crate) fn begin_return(&mut self, key: QueueKey) -> bool {
        let queue = self.queues.find_mut(key);
        queue.map(|queue| queue.returning += 1).is_some()
    }

    /// All are in their places; whether there is such a queue, which is to be attended to.
    pub(crate) fn end_return(&mut self, key: QueueKey) -> bool {
        let queue = self.queues.find_mut(key);
        queue.map(|queue| queue.returning -= 1).is_some()
    }

    /// A message comes back, unless it has come back too often (`x-delivery-limit`), or its queue is
    /// gone. `is_wish`: its client asked for that.
    pub(crate) fn give_back(
        &mut self,
        key: QueueKey,
        mut entry: Entry,
        is_wish: bool,
        ledger: &mut Ledger,
        confirms: &mut Confirms,
    ) {
        let Some(queue) = self.queues.find_mut(key) else {
            return ledger.release(&entry);
        };
        ledger.counts.redelivered += 1;
        entry.is_redelivered = true;
        if queue.is_quorum() {
            entry.deliveries = entry.deliveries.saturating_add(1);
            let limit = queue.settings.delivery_limit;
            if limit.is_some_and(|limit| u64::from(entry.deliveries) > limit) {
                return self.die(key, entry, Reason::DeliveryLimit, ledger, confirms);
            }
            if is_wish && limit.is_none() {
                queue.move_to_end(&mut entry, ledger);
            }
        }
        queue.insert(entry);
    }
}

impl Queue {
    /// Gives a message that is on its way back the place behind all others. A store has it at both
    /// places or at one, and at none at no time.
    fn move_to_end(&mut self, entry: &mut Entry, ledger: &mut Ledger) {
        let before = entry.place;
        entry.place = self.take_place();
        if let Some(queue) = self.id.filter(|_| entry.is_stored) {
            ledger.record(entry.record(queue));
            ledger.record(Record::Dequeued {
                queue,
                place: before,
            });
        }
    }
}
