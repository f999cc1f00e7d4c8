//! A message in a queue.

use std::sync::Arc;

use crate::{MessageContent, QueueId, Record, StoredMessage, Time};

/// A message's place in one queue; it moves to a channel while it waits for an acknowledgement.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) content: Arc<MessageContent>,
    /// A requeued message returns to this place.
    pub(crate) place: i64,
    pub(crate) expires_at: Option<Time>,
    /// Number of returns; only quorum queues count.
    pub(crate) deliveries: u32,
    /// Its priority, if its queue has priorities (`x-max-priority`).
    pub(crate) level: u8,
    pub(crate) is_redelivered: bool,
    /// Whether the store has a record of it.
    pub(crate) is_stored: bool,
    /// Whether the store has a record of it that a restart forgets: it has left memory, or may.
    pub(crate) is_spilled: bool,
}

impl Entry {
    /// Its bytes in memory beside its content.
    pub(crate) const MEMORY_BYTES: usize = size_of::<Self>();

    /// Stands for a message of a stream that a reader has not acknowledged.
    pub(crate) fn of_stream(blank: Arc<MessageContent>, offset: u64) -> Self {
        Self {
            content: blank,
            place: offset as i64,
            expires_at: None,
            deliveries: 0,
            level: 0,
            is_redelivered: false,
            is_stored: false,
            is_spilled: false,
        }
    }

    pub(crate) fn is_expired(&self, now: Time) -> bool {
        self.expires_at.is_some_and(|at| at <= now)
    }

    /// Whether the store has it.
    pub(crate) fn is_recorded(&self) -> bool {
        self.is_stored || self.is_spilled
    }

    pub(crate) fn record(&self, queue: QueueId) -> Record {
        Record::enqueued(
            queue,
            self.place,
            StoredMessage {
                content: Arc::clone(&self.content),
                expires_at: self.expires_at,
                deliveries: self.deliveries,
            },
        )
    }
}
