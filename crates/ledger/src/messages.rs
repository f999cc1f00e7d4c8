//! The live messages of a queue, as far as a ledger has them.

use std::collections::BTreeMap;
use std::mem;

use crosstie_queues::{Kept, LEVELED, QueueId, Record, StoredMessage};

use crate::runs::{Runs, Size};

/// The live messages of a queue.
#[derive(Clone, Debug, Default)]
pub(crate) struct Messages {
    pub(crate) runs: Runs,
    /// Only the log has its messages.
    pub(crate) is_deep: bool,
    /// Except those of a queue with priorities at places that do not tell the priority: an earlier version has put them
    /// there, and nobody else knows it.
    keeps_early: bool,
    pub(crate) contents: BTreeMap<i64, StoredMessage>,
    /// Bytes of these.
    resident_bytes: u64,
    /// The deliveries of messages, if they were counted later than the message.
    pub(crate) deliveries: BTreeMap<i64, u32>,
}

/// Approximate octets of a record in the log, besides a message's own.
pub(crate) const RECORD_BYTES: u64 = 40;

/// Memory of a message, and of a queue, besides what they consist of.
pub(crate) const CONTENT_MEMORY_BYTES: usize = 60;
const QUEUE_MEMORY_BYTES: usize = 160;

impl Messages {
    /// Keeps a new message in memory, unless it is left to the log; returns the bytes that this takes.
    pub(crate) fn keep(&mut self, place: i64, message: &StoredMessage) -> u64 {
        if self.is_deep && !self.keeps(place) {
            return 0;
        }
        self.contents.insert(place, message.clone());
        let bytes = resident(message);
        self.resident_bytes += bytes;
        bytes
    }

    /// Forgets what is in memory of a message; returns the bytes that this frees.
    pub(crate) fn forget(&mut self, place: i64) -> u64 {
        self.deliveries.remove(&place);
        let content = self.contents.remove(&place);
        let bytes = content.as_ref().map_or(0, resident);
        self.resident_bytes -= bytes;
        bytes
    }

    /// Leaves the messages to the log; returns those that leave memory, and their bytes. Only messages that stay are visited.
    pub(crate) fn deepen(&mut self, is_prioritized: bool) -> (BTreeMap<i64, StoredMessage>, u64) {
        (self.is_deep, self.keeps_early) = (true, is_prioritized);
        let left = match is_prioritized {
            true => self.contents.split_off(&LEVELED),
            false => mem::take(&mut self.contents),
        };
        let kept_bytes = self.contents.values().map(resident).sum();
        let bytes = mem::replace(&mut self.resident_bytes, kept_bytes) - kept_bytes;
        (left, bytes)
    }

    /// All messages in memory, and their bytes.
    pub(crate) fn take_contents(&mut self) -> (BTreeMap<i64, StoredMessage>, u64) {
        let contents = mem::take(&mut self.contents);
        (contents, mem::take(&mut self.resident_bytes))
    }

    /// Forgets what is in memory of the messages between those places; returns the bytes that this frees.
    pub(crate) fn forget_between(&mut self, from: i64, to: i64) -> u64 {
        if from > to {
            return 0;
        }
        self.deliveries
            .extract_if(from..=to, |_, _| true)
            .for_each(drop);
        let gone = self.contents.extract_if(from..=to, |_, _| true);
        let bytes = gone.map(|(_, message)| resident(&message)).sum();
        self.resident_bytes -= bytes;
        bytes
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        let contents = self.contents.len() + self.deliveries.len();
        QUEUE_MEMORY_BYTES + contents * CONTENT_MEMORY_BYTES + self.runs.memory_bytes()
    }

    pub(crate) fn deliver(&mut self, place: i64, deliveries: u32) {
        if let Some(message) = self.contents.get_mut(&place) {
            message.deliveries = deliveries;
        }
        if self.runs.find(place).is_some() {
            self.deliveries.insert(place, deliveries);
        }
    }

    /// The messages in memory, and the extents of others.
    pub(crate) fn records(&self, queue: QueueId) -> impl Iterator<Item = Record> {
        let contents = self.contents.iter();
        let contents = contents.map(move |(place, message)| enqueued(queue, *place, message));
        let from = if self.keeps_early { LEVELED } else { i64::MIN };
        let stretches = self.is_deep.then(|| self.runs.stretches(from));
        let kept = stretches.into_iter().flatten().map(move |stretch| {
            Record::Kept(Kept {
                queue,
                from: stretch.from,
                to: stretch.to,
                messages: stretch.count,
                body_bytes: stretch.body_bytes,
            })
        });
        contents.chain(kept)
    }

    /// Whether a queue that is not deep has messages at places that tell no priority.
    pub(crate) fn has_early(&self) -> bool {
        let first = self.contents.first_key_value();
        first.is_some_and(|(place, _)| *place < LEVELED)
    }

    /// Whether a message stays in memory although its queue is deep.
    fn keeps(&self, place: i64) -> bool {
        self.keeps_early && place < LEVELED
    }
}

pub(crate) fn size(message: &StoredMessage) -> Size {
    Size {
        bytes: message.content.memory_bytes() as u64 + RECORD_BYTES,
        body_bytes: message.content.body().len() as u64,
    }
}

pub(crate) fn resident(message: &StoredMessage) -> u64 {
    message.content.memory_bytes() as u64
}

pub(crate) fn enqueued(queue: QueueId, place: i64, message: &StoredMessage) -> Record {
    Record::enqueued(queue, place, message.clone())
}
