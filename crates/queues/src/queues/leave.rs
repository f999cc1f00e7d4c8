//! The departure of a message from its queue: sent, forgotten, dead; or its return.

use super::{Entry, Queue, Queues, Reason};
use crate::confirms::Confirms;
use crate::ledger::Ledger;
use crate::{QueueKey, Record, Time};

/// A message that was taken out of its queue.
pub(crate) struct Popped {
    pub(crate) entry: Entry,
    /// Its delivery count is sent.
    pub(crate) is_quorum: bool,
    /// Milliseconds since its arrival; `None` if they are not known.
    pub(crate) waited_ms: Option<u64>,
}

/// Departure of messages.
impl Queues {
    /// Whether a queue has a message to send.
    #[inline]
    pub(crate) fn is_ready(&self, key: QueueKey) -> bool {
        let queue = self.queues.find(key);
        queue.is_some_and(|queue| queue.messages.front().is_some() && queue.returning == 0)
    }

    /// Takes the first message out, and counts it as sent; the caller sends it or puts it back.
    #[inline]
    pub(crate) fn pop(&mut self, now: Time, key: QueueKey, ledger: &mut Ledger) -> Option<Popped> {
        let queue = self.queues.find_mut(key)?;
        let entry = queue.pop()?;
        let waited_ms = queue.waited(now, &entry);
        let (counters, all) = queue.counters(ledger);
        counters.count_sent(all);
        if entry.is_redelivered {
            counters.count_rare(all, |counts| counts.redelivered += 1);
        }
        Some(Popped {
            entry,
            is_quorum: queue.is_quorum(),
            waited_ms,
        })
    }

    /// Returns a message that could not be sent to its place.
    #[cold]
    pub(crate) fn put_back(&mut self, key: QueueKey, entry: Entry, ledger: &mut Ledger) {
        if let Some(queue) = self.queues.find_mut(key) {
            let (counters, all) = queue.counters(ledger);
            counters.count_unsent(all);
            if entry.is_redelivered {
                counters.count_rare(all, |counts| counts.redelivered -= 1);
            }
            queue.insert(entry, ledger);
        }
    }

    /// The same for `basic.get`, unless the first message has expired: while many expire, others may follow it.
    pub(crate) fn pop_unexpired(&mut self, now: Time, key: QueueKey) -> Option<Popped> {
        let queue = self.queues.find_mut(key)?;
        queue.messages.front().filter(|e| !e.is_expired(now))?;
        let entry = queue.pop()?;
        Some(Popped {
            waited_ms: queue.waited(now, &entry),
            is_quorum: queue.is_quorum(),
            entry,
        })
    }

    /// Returns a message to its place.
    pub(crate) fn insert(&mut self, key: QueueKey, entry: Entry, ledger: &Ledger) {
        if let Some(queue) = self.queues.find_mut(key) {
            queue.insert(entry, ledger);
        }
    }

    /// Notes that a channel holds a message of that queue, which was sent to a consumer.
    #[inline]
    pub(crate) fn hold_one(&mut self, key: QueueKey, ledger: &mut Ledger) {
        if let Some(queue) = self.queues.find_mut(key) {
            queue.unacknowledged += 1;
            let (counters, all) = queue.counters(ledger);
            counters.count_sent_to_ack(all);
        }
    }

    /// Counts an answer to `basic.get` with that message; unless `no_ack`, a channel holds the message.
    pub(crate) fn count_got(
        &mut self,
        key: QueueKey,
        no_ack: bool,
        is_redelivered: bool,
        ledger: &mut Ledger,
    ) {
        if let Some(queue) = self.queues.find_mut(key) {
            queue.unacknowledged += usize::from(!no_ack);
            let (counters, all) = queue.counters(ledger);
            counters.count_rare(all, |counts| counts.count_got(no_ack, is_redelivered));
        }
    }

    /// Counts an answer to `basic.get` without a message.
    pub(crate) fn count_got_empty(&mut self, key: QueueKey, ledger: &mut Ledger) {
        if let Some(queue) = self.queues.find_mut(key) {
            let (counters, all) = queue.counters(ledger);
            counters.count_rare(all, |counts| counts.got_empty += 1);
        }
    }

    /// Counts a message of a stream that was sent.
    pub(crate) fn count_sent(&mut self, key: QueueKey, ledger: &mut Ledger) {
        if let Some(queue) = self.queues.find_mut(key) {
            let (counters, all) = queue.counters(ledger);
            counters.count_sent(all);
        }
    }

    /// Notes that a channel holds it no longer; `is_acknowledged`: the client has acknowledged it.
    #[inline(always)]
    pub(crate) fn settle_one(&mut self, key: QueueKey, is_acknowledged: bool, ledger: &mut Ledger) {
        if let Some(queue) = self.queues.find_mut(key) {
            queue.unacknowledged = queue.unacknowledged.saturating_sub(1);
            if is_acknowledged {
                let (counters, all) = queue.counters(ledger);
                counters.count_acknowledged(all);
            }
        }
    }

    /// Forgets a message: it does not exist any more for this queue.
    #[inline]
    pub(crate) fn forget(
        &self,
        key: QueueKey,
        entry: &Entry,
        ledger: &mut Ledger,
        confirms: &mut Confirms,
    ) {
        if entry.is_recorded() {
            self.forget_stored(key, entry, ledger, confirms);
        }
        ledger.release(entry);
    }

    /// Out of line, so that the rest is small enough to be inlined.
    #[inline(never)]
    fn forget_stored(
        &self,
        key: QueueKey,
        entry: &Entry,
        ledger: &mut Ledger,
        confirms: &mut Confirms,
    ) {
        if let Some(queue) = self.queues.find(key).and_then(|queue| queue.id_of(entry)) {
            let place = entry.place;
            ledger.record(Record::dequeued(queue, place));
            confirms.forgotten(&entry.content);
        }
    }

    /// Handles the death of a message that has left a queue or a channel: it is published to the dead-letter exchange,
    /// if the queue has one.
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
        self.dead.die(key, queue, entry, reason);
    }
}

/// Return of messages.
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

    /// Begins the return of messages to a queue: it delivers none until all are back. Returns whether the queue exists.
    pub(crate) fn begin_return(&mut self, key: QueueKey) -> bool {
        let queue = self.queues.find_mut(key);
        queue.map(|queue| queue.returning += 1).is_some()
    }

    /// Ends a return; returns whether the queue exists, and is to be attended to.
    pub(crate) fn end_return(&mut self, key: QueueKey) -> bool {
        let queue = self.queues.find_mut(key);
        queue.map(|queue| queue.returning -= 1).is_some()
    }

    /// Returns a message, unless it has come back too often (`x-delivery-limit`), or its queue is gone. `is_wish`: its
    /// client requested that.
    pub(crate) fn give_back(
        &mut self,
        key: QueueKey,
        mut entry: Entry,
        is_wish: bool,
        ledger: &mut Ledger,
        confirms: &mut Confirms,
    ) {
        let queue = self.queues.find_mut(key);
        // A reader of a stream holds no message that could return.
        let Some(queue) = queue.filter(|queue| !queue.is_stream()) else {
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
        queue.insert(entry, ledger);
    }
}

impl Queue {
    /// Moves a message that is being returned behind all others. The store has it at either or both places at any time.
    fn move_to_end(&mut self, entry: &mut Entry, ledger: &mut Ledger) {
        let before = entry.place;
        entry.place = self.take_place(entry.level);
        if let Some(queue) = self.id.filter(|_| entry.is_stored) {
            ledger.record(entry.record(queue));
            ledger.record(Record::dequeued(queue, before));
        }
    }
}
