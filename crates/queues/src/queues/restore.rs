//! The return of queues and their messages from the store.

use super::{Entry, Queue, Queues};
use crate::ledger::Ledger;
use crate::{QueueId, QueueKey, Record, StoredMessage};

impl Queues {
    /// A queue that a store has kept. No other is given its number.
    pub(crate) fn restore_queue(&mut self, id: QueueId, queue: Queue) -> QueueKey {
        let key = self.queues.insert(queue);
        self.restoring.insert(id, key);
        key
    }

    /// That number was given, whatever became of its queue.
    pub(crate) fn restore_id(&mut self, id: QueueId) {
        self.next_id = self.next_id.max(QueueId(id.0.saturating_add(1)));
    }

    /// A queue that was deleted, which is returned.
    pub(crate) fn restore_deleted(&mut self, id: QueueId, ledger: &mut Ledger) -> Option<QueueKey> {
        let key = self.restoring.remove(&id)?;
        if let Some(queue) = self.queues.remove(key) {
            ledger.release_all(queue.messages);
        }
        Some(key)
    }

    /// A record about a queue's messages; one about another queue does nothing.
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
            Record::Returned {
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
        let entry = Entry {
            level: queue.level(message.content.properties()),
            content: message.content,
            place,
            expires_at: message.expires_at,
            deliveries: message.deliveries,
            // No record says who was sent it: any message may have been delivered before the end,
            // and `redelivered` is to be set where that cannot be ruled out (AMQP 0-9-1,
            // basic.deliver).
            is_redelivered: true,
            is_stored: true,
        };
        ledger.account(&entry);
        match queue.next_place <= place {
            true => queue.push(entry),
            false => queue.insert(entry),
        }
        queue.next_place = queue.next_place.max(place.saturating_add(1));
    }

    /// Everything has been given back. Returns the queues in the order of their keys: what follows
    /// from a seed follows from it alone.
    pub(crate) fn end_restoring(&mut self) -> Vec<QueueKey> {
        let mut keys: Vec<_> = std::mem::take(&mut self.restoring).into_values().collect();
        keys.sort_unstable();
        keys
    }

    /// The queue that a store calls so.
    fn restoring(&mut self, id: QueueId) -> Option<&mut Queue> {
        let key = self.restoring.get(&id)?;
        self.queues.find_mut(*key)
    }
}
