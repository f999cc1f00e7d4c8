//! Messages that were left to the log or have gone all at once, and still take memory: they are freed in parts.
//!
//! A queue may have hundreds of thousands of messages in memory. Freeing them in one step would hold up the vhost's log and
//! its heartbeats.

use std::collections::BTreeMap;

use crosstie_queues::StoredMessage;

use crate::messages::{CONTENT_MEMORY_BYTES, resident};

/// Messages by their places, of one queue each.
#[derive(Clone, Debug, Default)]
pub(crate) struct Leaving {
    queues: Vec<BTreeMap<i64, StoredMessage>>,
    /// Memory of the messages. It is apart from that of queues: else other queues would be left to the log for memory that is
    /// about to be free.
    bytes: u64,
}

impl Leaving {
    /// Adds messages, with their bytes.
    pub(crate) fn add(&mut self, (messages, bytes): (BTreeMap<i64, StoredMessage>, u64)) {
        self.bytes += bytes + messages.len() as u64 * CONTENT_MEMORY_BYTES as u64;
        if !messages.is_empty() {
            self.queues.push(messages);
        }
    }

    /// Frees some messages: returns how many.
    pub(crate) fn free(&mut self, count_max: usize) -> usize {
        let mut count = 0;
        while count < count_max
            && let Some(messages) = self.queues.last_mut()
        {
            match messages.pop_last() {
                Some((_, message)) => {
                    count += 1;
                    self.bytes -= resident(&message) + CONTENT_MEMORY_BYTES as u64;
                }
                None => drop(self.queues.pop()),
            }
        }
        count
    }

    /// Their memory.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.bytes as usize
    }
}
