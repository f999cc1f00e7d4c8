//! Leaves the messages of queues to the log, and frees their memory in parts.

use std::collections::BTreeMap;

use crosstie_queues::{QueueId, Record, StoredMessage};

use super::Live;

/// Messages that are freed with each record, and with each call of [`Live::set_crowded`].
const FREED_PER_RECORD: usize = 64;
const FREED_PER_CALL: usize = 16_384;

impl Live {
    pub(crate) fn set_crowded(&mut self, is_crowded: bool) {
        self.crowding.set(is_crowded);
        let left = FREED_PER_CALL - self.leaving.free(FREED_PER_CALL);
        let is_declared = |queue: &QueueId| self.queues.contains_key(queue);
        let long = self
            .crowding
            .next_long(&self.messages, is_declared, &self.config, left);
        long.into_iter().for_each(|queue| self.deepen(queue));
        self.leaving.free(left);
    }

    /// Leaves the messages of a queue to the log, if they are too many for the memory in use.
    pub(super) fn judge(&mut self, queue: QueueId) {
        let Some(messages) = self.messages.get(&queue) else {
            return;
        };
        let is_many = self.resident_bytes >= self.config.resident_bytes_max;
        let is_declared = || self.queues.contains_key(&queue);
        let crowding = &self.crowding;
        if crowding.is_long(messages, is_many, is_declared, &self.config) {
            self.deepen(queue);
        }
    }

    /// Frees some of the messages that no queue needs any more, behind a record.
    pub(super) fn free_some(&mut self) {
        self.leaving.free(FREED_PER_RECORD);
    }

    /// Takes messages that no queue needs any more, with their bytes.
    pub(super) fn leave(&mut self, (messages, bytes): (BTreeMap<i64, StoredMessage>, u64)) {
        self.resident_bytes -= bytes;
        self.leaving.add((messages, bytes));
    }

    #[cold]
    fn deepen(&mut self, queue: QueueId) {
        let is_prioritized = self.is_prioritized(queue);
        let left = self.change(queue, |messages| messages.deepen(is_prioritized));
        self.leave(left.unwrap_or_default());
        self.deep += 1;
    }

    /// Whether its messages have priorities, as far as it is declared.
    fn is_prioritized(&self, queue: QueueId) -> bool {
        let declared = self.queues.get(&queue).map(|queue| &queue.record.1);
        let Some(Record::QueueDeclared { arguments, .. }) = declared else {
            return false;
        };
        arguments.as_table().find("x-max-priority").is_some()
    }
}
