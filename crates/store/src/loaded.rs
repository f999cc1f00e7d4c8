//! Which queues' messages are read when a store is opened.

use std::collections::HashSet;

use crosstie_queues::QueueId;

use crate::segments::record::QueueKey;
use crate::segments::state::{Queue, State};

/// The queues whose messages are read at a start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loaded {
    /// Maximum messages of a queue.
    pub messages_max: usize,
    /// Approximate maximum of bytes of all of these queues together. Those with the fewest messages come first.
    pub bytes_max: u64,
}

impl Loaded {
    pub const ALL: Self = Self {
        messages_max: usize::MAX,
        bytes_max: u64::MAX,
    };

    pub(crate) fn choose(self, state: &State) -> HashSet<QueueKey> {
        let queues = state.queues.iter();
        let short =
            queues.filter(|(key, queue)| key.vhost != 0 && queue.count <= self.messages_max);
        let mut short: Vec<_> = short
            .map(|(key, queue)| (queue.count, *key, memory_bytes(*key, queue)))
            .collect();
        short.sort_unstable();
        let mut left = self.bytes_max;
        let fits = move |(_, _, bytes): &(usize, QueueKey, u64)| {
            let rest = left.checked_sub(*bytes);
            left = rest.unwrap_or(0);
            rest.is_some()
        };
        let fit = short.into_iter().take_while(fits);
        fit.map(|(_, key, _)| key).collect()
    }
}

/// Approximate memory of a message besides its body.
const MESSAGE_MEMORY_BYTES: u64 = 250;

/// Approximate memory of a queue's messages once they are read.
fn memory_bytes(key: QueueKey, queue: &Queue) -> u64 {
    let bodies = queue.kept(QueueId(key.queue));
    let bodies = bodies.map_or(0, |kept| kept.body_bytes);
    bodies.saturating_add(MESSAGE_MEMORY_BYTES * queue.count as u64)
}
