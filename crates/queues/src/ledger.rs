//! The ledger, which every room of a vhost writes into: the journal, the counters, the steps of the input that is
//! handled, and the bytes that messages take.
//!
//! It is lent whole, because nearly every change is an entry in several of these; nobody decides by
//! what is in it, but by [`Steps`].

use crate::queues::Entry;
use crate::queues::Messages;
use crate::steps::Steps;
use crate::{Counts, Journal, MessageContent, Record};

#[derive(Debug, Default)]
pub(crate) struct Ledger {
    pub(crate) journal: Journal,
    /// The sums; how many there are of something is counted when asked for.
    pub(crate) counts: Counts,
    pub(crate) steps: Steps,
    memory_bytes: usize,
}

impl Ledger {
    #[inline]
    pub(crate) fn record(&mut self, record: Record) {
        self.journal.position.0 += 1;
        self.journal.records.push(record);
    }

    /// Bytes of messages, with what holds them.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.memory_bytes
    }

    /// An entry more in memory.
    pub(crate) fn account(&mut self, entry: &Entry) {
        self.memory_bytes += Entry::MEMORY_BYTES;
        self.account_content(&entry.content);
    }

    /// A holder of a message's bytes more: the bytes are counted with the first one.
    pub(crate) fn account_content(&mut self, content: &MessageContent) {
        if content.hold() {
            self.memory_bytes += content.memory_bytes();
        }
    }

    /// An entry less.
    pub(crate) fn release(&mut self, entry: &Entry) {
        self.memory_bytes = self.memory_bytes.saturating_sub(Entry::MEMORY_BYTES);
        self.release_content(&entry.content);
    }

    /// A holder of a message's bytes less.
    pub(crate) fn release_content(&mut self, content: &MessageContent) {
        if content.release() {
            let bytes = content.memory_bytes();
            self.memory_bytes = self.memory_bytes.saturating_sub(bytes);
        }
    }

    /// All of these less, at once: for a restart, when nobody is connected yet.
    pub(crate) fn release_all(&mut self, mut entries: Messages) {
        while let Some(entry) = entries.pop() {
            self.release(&entry);
        }
    }
}
