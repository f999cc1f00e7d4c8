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

/// Queues that one call looks at, and messages that it takes out of memory.
const QUEUES: usize = 4_096;
const MESSAGES: usize = 16_384;

impl Crowding {
    pub(crate) fn set(&mut self, is_crowded: bool) {
        if self.is_crowded != is_crowded {
            self.is_crowded = is_crowded;
            self.sweep = Some(Bound::Unbounded).filter(|_| is_crowded);
        }
    }

    /// The next queues to be left to the log.
    pub(crate) fn next_long(
        &mut self,
        all: &BTreeMap<QueueId, Messages>,
        config: &Config,
    ) -> Vec<QueueId> {
        let mut long = Vec::new();
        let Some(from) = self.sweep.take() else {
            return long;
        };
        let (mut visited, mut unloaded) = (0, 0);
        for (queue, messages) in all.range((from, Bound::Unbounded)) {
            visited += 1;
            if self.is_long(messages, true, config) {
                long.push(*queue);
                unloaded += messages.contents.len();
            }
            if visited == QUEUES || unloaded >= MESSAGES {
                self.sweep = Some(Bound::Excluded(*queue));
                break;
            }
        }
        long
    }

    /// Whether the messages of a queue are to be left to the log, and are not yet. `is_many`: all messages take so much
    /// memory that long queues are.
    pub(crate) fn is_long(&self, messages: &Messages, is_many: bool, config: &Config) -> bool {
        let (count_max, body_bytes_max) = match self.is_crowded {
            true => (config.crowded_messages, config.crowded_body_bytes),
            false => (config.long_messages, config.long_body_bytes),
        };
        let runs = &messages.runs;
        let is_long = runs.len() > count_max || runs.body_bytes() > body_bytes_max;
        is_long && (is_many || self.is_crowded) && !messages.is_deep
    }
}
