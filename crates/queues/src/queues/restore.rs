//! The return of queues and their messages from the store.

use super::messages::age;
use super::{Entry, Queue, Queues, Reason};
use crate::confirms::Confirms;
use crate::ledger::Ledger;
use crate::{QueueId, QueueKey, Record, StoredMessage};

impl Queues {
    /// Restores a queue. Its id is not given to another.
    pub(crate) fn restore_queue(&mut self, id: QueueId, queue: Queue) -> QueueKey {
        let key = self.queues.insert(queue);
        self.restoring.insert(id, key);
        key
    }

    /// Notes that an id was used, even if its queue is gone.
    pub(crate) fn restore_id(&mut self, id: QueueId) {
        self.next_id = self.next_id.max(QueueId(id.0.saturating_add(1)));
    }

    /// Removes and returns a queue that was deleted.
    pub(crate) fn restore_deleted(&mut self, id: QueueId, ledger: &mut Ledger) -> Option<QueueKey> {
        let key = self.restoring.remove(&id)?;
        if let Some(queue) = self.queues.remove(key) {
            self.hidden -= usize::from(queue.role.is_hidden());
            ledger.release_all(queue.messages);
        }
        Some(key)
    }

    /// Restores a record about a queue's messages; a record of an unknown queue has no effect.
    pub(crate) fn restore(&mut self, record: Record, ledger: &mut Ledger) {
        match record {
            Record::Enqueued {
                queue,
                place,
                message,
            } => self.restore_message(queue, place, message, ledger),
            Record::Dequeued { queue, place } => {
                if let Some(entry) = self.restoring(queue).and_then(|queue| queue.take(place)) {
                    ledger.release(&entry);
                }
            }
            Record::Delivered {
                queue,
                place,
                deliveries,
            } => {
                if let Some(queue) = self.restoring(queue)
                    && let Some(entry) = queue.messages.find_mut(place)
                {
                    entry.deliveries = deliveries;
                }
            }
            Record::Purged { queue } => {
                if let Some(queue) = self.restoring(queue) {
                    ledger.release_all(queue.take_messages());
                }
            }
            Record::Cleared { queue, from, to } => {
                let queue = self.restoring(queue);
                let gone = queue.map_or(Vec::new(), |queue| queue.take_between(from, to));
                gone.iter().for_each(|entry| ledger.release(entry));
            }
            Record::Kept(kept) => self.restore_kept(&kept),
            Record::Rested { queue, fresh_from } => drop(self.rested.insert(queue, fresh_from)),
            _ => {}
        }
    }

    fn restore_message(
        &mut self,
        queue: QueueId,
        place: i64,
        message: StoredMessage,
        ledger: &mut Ledger,
    ) {
        let Some(queue) = self.restoring(queue) else {
            return;
        };
        let level = queue.level(message.content.properties());
        queue.next_place = queue.next_place.max(age(place).saturating_add(1));
        let entry = Entry {
            level,
            content: message.content,
            place,
            expires_at: message.expires_at,
            deliveries: message.deliveries,
            // Any message may have been delivered before the end, and `redelivered` has to be set unless that can be
            // ruled out (AMQP 0-9-1, basic.deliver). `end_restoring` does that.
            is_redelivered: true,
            is_stored: true,
            is_spilled: false,
        };
        ledger.account(&entry);
        queue.insert(entry, ledger);
    }

    /// Ends the restore. Returns the queues in the order of their keys, so that everything random follows from the seed
    /// alone.
    pub(crate) fn end_restoring(
        &mut self,
        ledger: &mut Ledger,
        confirms: &mut Confirms,
    ) -> Vec<QueueKey> {
        self.adopt(ledger);
        let rested = std::mem::take(&mut self.rested);
        let mut keys = Vec::new();
        for (id, key) in std::mem::take(&mut self.restoring) {
            keys.push(key);
            self.number_spilled(key);
            for entry in self.judge_restored(key, rested.get(&id).copied()) {
                self.die(key, entry, Reason::DeliveryLimit, ledger, confirms);
            }
        }
        keys.sort_unstable();
        keys
    }

    /// Marks the messages of a queue that were never delivered, if that is known. Takes out those whose last delivery
    /// before the end exceeded the delivery limit.
    fn judge_restored(&mut self, key: QueueKey, fresh_from: Option<i64>) -> Vec<Entry> {
        let Some(queue) = self.queues.find_mut(key) else {
            return Vec::new();
        };
        queue.redelivered_before = fresh_from.unwrap_or(queue.next_place);
        let limit = queue.settings.delivery_limit.filter(|_| queue.is_quorum());
        let mut over = Vec::new();
        if fresh_from.is_some() || limit.is_some() {
            for entry in queue.messages.iter_mut() {
                let is_fresh = fresh_from.is_some_and(|from| from <= age(entry.place));
                entry.is_redelivered = !is_fresh || entry.deliveries > 0;
                if limit.is_some_and(|limit| u64::from(entry.deliveries) > limit) {
                    over.push(entry.place);
                }
            }
        }
        over.sort_unstable();
        over.into_iter()
            .filter_map(|place| queue.take(place))
            .collect()
    }

    /// The queue with that id in the store.
    fn restoring(&mut self, id: QueueId) -> Option<&mut Queue> {
        let key = self.restoring.get(&id)?;
        self.queues.find_mut(*key)
    }
}
