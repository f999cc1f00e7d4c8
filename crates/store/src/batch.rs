//! Records that are committed together.

use std::mem;
use std::sync::Arc;

use crosstie_queues::{Position, QueueId, Record, find_lasting};

/// Records in the order in which they happened, and how far they bring each vhost's journal.
#[derive(Debug, Default)]
pub struct Batch {
    parts: Vec<Part>,
    positions: Vec<(Arc<str>, Position)>,
    bytes: usize,
}

#[derive(Debug)]
struct Part {
    vhost: Arc<str>,
    records: Vec<Record>,
    position: Position,
    bytes: usize,
}

/// Approximate memory of a record beside its message's bytes.
const RECORD_BYTES: usize = 160;

impl Batch {
    /// Adds a vhost's records, up to and including `position`, after all earlier ones.
    pub fn push(&mut self, vhost: &Arc<str>, records: Vec<Record>, position: Position) {
        self.reach(vhost, position);
        if records.is_empty() {
            return;
        }
        let bytes = records.iter().map(record_bytes).sum();
        self.bytes += bytes;
        self.parts.push(Part {
            vhost: Arc::clone(vhost),
            records,
            position,
            bytes,
        });
    }

    /// Appends a later batch.
    pub fn append(&mut self, after: Self) {
        for (vhost, position) in &after.positions {
            self.reach(vhost, *position);
        }
        self.bytes += after.bytes;
        self.parts.extend(after.parts);
    }

    /// Takes the front of a batch that was not cancelled yet: about `bytes_max` bytes, and at least one push.
    pub(crate) fn take_front(&mut self, bytes_max: usize) -> Self {
        if self.bytes <= bytes_max {
            return mem::take(self);
        }
        let mut front = Self::default();
        let mut count = 0;
        for part in &self.parts {
            if count > 0 && front.bytes + part.bytes > bytes_max {
                break;
            }
            front.bytes += part.bytes;
            front.reach(&part.vhost, part.position);
            count += 1;
        }
        if count == self.parts.len() {
            return mem::take(self);
        }
        let rest = self.parts.split_off(count);
        front.parts = mem::replace(&mut self.parts, rest);
        self.bytes -= front.bytes;
        front
    }

    /// Removes records that cancel each other: a message that came and went costs no write. The rest belongs to one
    /// commit, and must not be split any more.
    pub fn cancel(&mut self) {
        if !self.records().any(|(_, record)| record.is_departure()) {
            return;
        }
        let records = self.records();
        let kept = find_lasting(records.map(|(vhost, record)| (&**vhost, record)));
        let mut kept = kept.iter();
        for part in &mut self.parts {
            // As many marks as records.
            part.records.retain(|_| *kept.next().unwrap_or(&true));
            part.bytes = part.records.iter().map(record_bytes).sum();
        }
        self.parts.retain(|part| !part.records.is_empty());
        self.bytes = self.parts.iter().map(|part| part.bytes).sum();
    }

    /// The highest position of each vhost.
    pub fn positions(&self) -> &[(Arc<str>, Position)] {
        &self.positions
    }

    pub fn records(&self) -> impl DoubleEndedIterator<Item = (&Arc<str>, &Record)> {
        let parts = self.parts.iter();
        parts.flat_map(|part| part.records.iter().map(|record| (&part.vhost, record)))
    }

    /// The queues and places of a vhost's messages.
    pub(crate) fn messages(&self, vhost: &str) -> impl Iterator<Item = (QueueId, i64)> {
        let records = self.records().filter(move |(of, _)| ***of == *vhost);
        records.filter_map(|(_, record)| match record {
            Record::Enqueued { queue, place, .. } => Some((*queue, *place)),
            _ => None,
        })
    }

    /// Records that take messages away and can be written without the rest, also before it, and then again
    /// with it. They are of parts, handed over at once, that hold only departures and deliveries. A dead
    /// letter's original is not among them, since its departure is handed over with the letter.
    pub(crate) fn departures(&self) -> impl Iterator<Item = (&Arc<str>, &Record)> {
        let adds = |record: &Record| !record.is_departure() && !record.is_delivery();
        let parts = self.parts.iter();
        let parts = parts.filter(move |part| !part.records.iter().any(adds));
        let records = parts.flat_map(|part| part.records.iter().map(|found| (&part.vhost, found)));
        records.filter(|(_, record)| record.is_departure())
    }

    /// Whether nothing is to be written, and no position to be reported.
    pub(crate) fn is_done(&self) -> bool {
        self.parts.is_empty() && self.positions.is_empty()
    }

    /// Nothing is to be written.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Approximate memory.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    fn reach(&mut self, vhost: &Arc<str>, position: Position) {
        match self.positions.iter_mut().find(|(known, _)| known == vhost) {
            Some((_, reached)) => *reached = position.max(*reached),
            None => self.positions.push((Arc::clone(vhost), position)),
        }
    }
}

fn record_bytes(record: &Record) -> usize {
    RECORD_BYTES + record.memory_bytes()
}

#[cfg(test)]
mod tests {
    use crosstie_amqp::Properties;
    use crosstie_queues::{MessageContent, QueueId, StoredMessage};

    use super::*;

    /// A message that waits in queue 1, large ones in queue 3, and its dead letter in queue 2.
    fn dead_lettered() -> (Batch, usize) {
        let part_bytes = 40_000;
        let mut batch = Batch::default();
        let parts = [
            vec![enqueued(1, 10)],
            vec![enqueued(3, part_bytes)],
            vec![enqueued(2, 10), Record::dequeued(QueueId(1), 0)],
        ];
        for (records, position) in parts.into_iter().zip(1..) {
            batch.push(&"/".into(), records, Position(position));
        }
        (batch, part_bytes)
    }

    fn enqueued(queue: u64, body_bytes: usize) -> Record {
        let body = vec![0; body_bytes];
        let properties = Properties::EMPTY.bytes();
        Record::enqueued(
            QueueId(queue),
            0,
            StoredMessage::new(Arc::new(MessageContent::new("", "", properties, &body))),
        )
    }

    /// The queues whose first message a batch keeps.
    fn holding(batch: &Batch) -> Vec<u64> {
        let mut queues = Vec::new();
        for (_, record) in batch.records() {
            match record {
                Record::Enqueued { queue, .. } => queues.push(queue.0),
                Record::Dequeued { queue, .. } => queues.retain(|held| *held != queue.0),
                _ => {}
            }
        }
        queues
    }

    #[test]
    fn a_message_that_moves_between_two_commits_is_in_the_first() {
        let (mut rest, bytes_max) = dead_lettered();
        let mut front = rest.take_front(bytes_max);
        front.cancel();
        assert_eq!(front.positions(), [("/".into(), Position(1))]);
        assert_eq!(holding(&front), [1]);
        rest.cancel();
        assert_eq!(rest.positions(), [("/".into(), Position(3))]);
        assert_eq!(holding(&rest), [3, 2]);
        assert_eq!(rest.records().count(), 3, "what it has left is written");
    }

    #[test]
    fn only_removals_without_a_dead_letter_are_written_alone() {
        let dequeued = |queue, place| Record::Dequeued {
            queue: QueueId(queue),
            place,
        };
        let purged = Record::Purged { queue: QueueId(3) };
        let (mut batch, _) = dead_lettered();
        let parts = [
            vec![dequeued(5, 1), dequeued(5, 2)],
            vec![enqueued(6, 10), dequeued(5, 3)],
            vec![purged.clone()],
        ];
        for (records, position) in parts.into_iter().zip(4..) {
            batch.push(&"/".into(), records, Position(position));
        }
        batch.cancel();
        let departing: Vec<_> = batch
            .departures()
            .map(|(_, record)| record.clone())
            .collect();
        assert_eq!(departing, [dequeued(5, 1), dequeued(5, 2), purged]);
    }

    #[test]
    fn a_message_that_moves_within_a_commit_costs_one_write() {
        let (mut whole, bytes_max) = dead_lettered();
        let mut front = whole.take_front(2 * bytes_max);
        front.cancel();
        assert_eq!(front.positions(), [("/".into(), Position(3))]);
        assert_eq!(holding(&front), [3, 2]);
        assert_eq!(front.records().count(), 2);
    }
}
