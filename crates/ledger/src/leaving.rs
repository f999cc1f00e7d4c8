//! Messages that were left to the log or have gone all at once, and still take memory: they are freed in parts.
//!
//! A queue may have hundreds of thousands of messages in memory. Freeing them in one step would hold up the vhost's log and
//! its heartbeats.

use std::collections::BTreeMap;

use crosstie_queues::StoredMessage;

use crate::messages::resident;

/// Messages by their places, of one queue each.
#[derive(Clone, Debug, Default)]
pub(crate) struct Leaving {
    queues: Vec<BTreeMap<i64, StoredMessage>>,
}

impl Leaving {
    pub(crate) fn add(&mut self, messages: BTreeMap<i64, StoredMessage>) {
        if !messages.is_empty() {
            self.queues.push(messages);
        }
    }

    /// Frees some messages: returns how many, and their bytes.
    pub(crate) fn free(&mut self, count_max: usize) -> (usize, u64) {
        let (mut count, mut bytes) = (0, 0);
        while count < count_max
            && let Some(messages) = self.queues.last_mut()
        {
            match messages.pop_last() {
                Some((_, message)) => {
                    count += 1;
                    bytes += resident(&message);
                }
                None => drop(self.queues.pop()),
            }
        }
        (count, bytes)
    }
}
