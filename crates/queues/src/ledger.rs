//! The ledger that every room of a vhost writes to: the journal, the counters, the steps of the present input, and the
//! bytes of messages.
//!
//! It is borrowed whole, because nearly every change writes several of these. No room decides by its contents, except
//! by [`Steps`].

use crate::queues::Entry;
use crate::queues::Messages;
use crate::steps::Steps;
use crate::waits::Waits;
use crate::{Counts, Deliveries, Journal, MessageContent, Position, Record, StreamChange};

/// The counters of one type of queues, at a place that is a power of two: to find it costs one instruction.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(crate) struct OfKind(pub(crate) Deliveries);

#[derive(Debug, Default)]
pub(crate) struct Ledger {
    pub(crate) journal: Journal,
    /// The running sums; other counts are computed on request.
    pub(crate) counts: Counts,
    /// Messages that left queues, by [`crate::QueueKind`].
    pub(crate) deliveries: [OfKind; 3],
    /// For how long messages waited in queues.
    pub(crate) waits: Waits,
    pub(crate) steps: Steps,
    /// The store has committed everything up to here.
    pub(crate) committed: Position,
    memory_bytes: usize,
    stored_bytes: usize,
}

impl Ledger {
    #[inline]
    pub(crate) fn record(&mut self, record: Record) {
        self.journal.position.0 += 1;
        self.journal.records.push(record);
    }

    /// Counts a publication; `is_first`: its channel has published nothing before.
    #[inline(always)]
    pub(crate) fn count_published(&mut self, bytes: usize, is_first: bool) {
        self.counts.published += 1;
        self.counts.sizes.count(bytes);
        if is_first {
            self.counts.publishers += 1;
        }
    }

    /// Notes a change of a stream. It has a position as a record has.
    pub(crate) fn change_stream(&mut self, change: StreamChange) {
        self.journal.position.0 += 1;
        self.journal.streams.push(change);
    }

    /// Adds bytes in memory that belong to no message of a queue.
    pub(crate) fn hold_bytes(&mut self, bytes: usize) {
        self.memory_bytes += bytes;
    }

    pub(crate) fn free_bytes(&mut self, bytes: usize) {
        self.memory_bytes = self.memory_bytes.saturating_sub(bytes);
    }

    /// Bytes of messages, with their holders.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.memory_bytes
    }

    /// Bytes of the messages in memory that have a record of a durable queue, once for each queue.
    pub(crate) fn stored_bytes(&self) -> usize {
        self.stored_bytes
    }

    /// Notes that an entry in memory has such a record from now on.
    pub(crate) fn note_stored(&mut self, entry: &Entry) {
        self.stored_bytes += entry.content.memory_bytes();
    }

    /// Adds an entry in memory.
    pub(crate) fn account(&mut self, entry: &Entry) {
        self.memory_bytes += Entry::MEMORY_BYTES;
        if entry.is_stored {
            self.note_stored(entry);
        }
        self.account_content(&entry.content);
    }

    /// Adds a holder of a message's bytes: the bytes count with the first one.
    pub(crate) fn account_content(&mut self, content: &MessageContent) {
        if content.hold() {
            self.memory_bytes += content.memory_bytes();
        }
    }

    /// Removes an entry.
    pub(crate) fn release(&mut self, entry: &Entry) {
        self.memory_bytes = self.memory_bytes.saturating_sub(Entry::MEMORY_BYTES);
        if entry.is_stored {
            let bytes = entry.content.memory_bytes();
            self.stored_bytes = self.stored_bytes.saturating_sub(bytes);
        }
        self.release_content(&entry.content);
    }

    /// Removes a holder of a message's bytes.
    pub(crate) fn release_content(&mut self, content: &MessageContent) {
        if content.release() {
            let bytes = content.memory_bytes();
            self.memory_bytes = self.memory_bytes.saturating_sub(bytes);
        }
    }

    /// Removes all of these at once: for a restart, before any client is connected.
    pub(crate) fn release_all(&mut self, mut entries: Messages) {
        while let Some(entry) = entries.pop() {
            self.release(&entry);
        }
    }
}
