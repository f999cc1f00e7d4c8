//! Relief for a memory that is nearly full: the log alone has the messages of all queues but the shortest.

use std::collections::BTreeMap;
use std::ops::Bound;

use crosstie_queues::QueueId;

use crate::config::Config;
use crate::messages::Messages;

/// Whether memory is nearly full.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Crowding {
    is_crowded: bool,
    /// The queues that were there before are looked at once, some at a time: those from here on are left.
    sweep: Option<Bound<QueueId>>,
}

/// Queues that one call looks at.
const QUEUES: usize = 4_096;

impl Crowding {
    /// A sweep that has begun goes on to its end. Queues that get messages meanwhile are judged at once, so that none has
    /// to be looked at again.
    pub(crate) fn set(&mut self, is_crowded: bool) {
        if is_crowded && !self.is_relieving() {
            self.sweep = Some(Bound::Unbounded);
        }
        self.is_crowded = is_crowded;
    }

    /// The next queues to be left to the log, with about so many messages in memory.
    pub(crate) fn next_long(
        &mut self,
        all: &BTreeMap<QueueId, Messages>,
        is_declared: impl Fn(&QueueId) -> bool,
        config: &Config,
        messages_max: usize,
    ) -> Vec<QueueId> {
        let mut long = Vec::new();
        let Some(from) = self.sweep.filter(|_| messages_max > 0) else {
            return long;
        };
        let (mut visited, mut unloaded) = (0, 0);
        let mut next = None;
        for (queue, messages) in all.range((from, Bound::Unbounded)) {
            visited += 1;
            if self.is_long(messages, false, || is_declared(queue), config) {
                long.push(*queue);
                unloaded += messages.contents.len();
            }
            if visited == QUEUES || unloaded >= messages_max {
                next = Some(Bound::Excluded(*queue));
                break;
            }
        }
        self.sweep = next;
        long
    }

    /// Whether the messages of a queue are to be left to the log, and are not yet. `is_many`: all messages take so much
    /// memory that long queues are.
    ///
    /// Messages at early places stay if their queue has priorities, which only its declaration tells. The relief waits for
    /// that, as far as the queue is not long.
    pub(crate) fn is_long(
        &self,
        messages: &Messages,
        is_many: bool,
        is_declared: impl FnOnce() -> bool,
        config: &Config,
    ) -> bool {
        let runs = &messages.runs;
        let exceeds = |count_max: usize, body_bytes_max: u64| {
            runs.len() > count_max || runs.body_bytes() > body_bytes_max
        };
        if messages.is_deep {
            return false;
        }
        let is_long = is_many && exceeds(config.long_messages, config.long_body_bytes);
        is_long
            || self.is_relieving()
                && exceeds(config.crowded_messages, config.crowded_body_bytes)
                && (!messages.has_early() || is_declared())
    }

    fn is_relieving(&self) -> bool {
        self.is_crowded || self.sweep.is_some()
    }
}
