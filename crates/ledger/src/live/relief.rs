//! Leaves the messages of queues to the log.

use crosstie_queues::{QueueId, Record};

use super::Live;

impl Live {
    pub(crate) fn set_crowded(&mut self, is_crowded: bool) {
        self.crowding.set(is_crowded);
        let is_declared = |queue: &QueueId| self.queues.contains_key(queue);
        let long = self
            .crowding
            .next_long(&self.messages, is_declared, &self.config);
        long.into_iter().for_each(|queue| self.deepen(queue));
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

    #[cold]
    fn deepen(&mut self, queue: QueueId) {
        let is_prioritized = self.is_prioritized(queue);
        let freed = self.change(queue, |messages| messages.deepen(is_prioritized));
        self.resident_bytes -= freed.unwrap_or_default();
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
