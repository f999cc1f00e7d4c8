//! Answers to many deliveries at once, and deliveries that channels left unanswered when they ended.
//!
//! They are taken out of the channel at once, and processed in parts, the oldest first. All messages that return to a
//! queue are in their places before the queue delivers any: it stops delivering from the first of them on.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Bound::{Excluded, Unbounded};

use crate::channels::{Delivery, Unacked};
use crate::queues::Queues;
use crate::transactions::Verdict;
use crate::{ChannelKey, QueueKey};

#[derive(Debug, Default)]
pub(crate) struct Settlements {
    of_channels: BTreeMap<ChannelKey, Settling>,
    /// The last channel that had its turn.
    last: Option<ChannelKey>,
}

/// The unprocessed answers of one channel, in order.
#[derive(Debug, Default)]
pub(crate) struct Settling {
    runs: VecDeque<Run>,
    /// Queues that deliver nothing until all of this is done.
    returning: BTreeSet<QueueKey>,
}

#[derive(Debug)]
struct Run {
    deliveries: Unacked,
    verdict: Verdict,
}

impl Settlements {
    /// Adds the same answer for all these deliveries. So far only the first one's queue stops delivering.
    pub(crate) fn push(
        &mut self,
        key: ChannelKey,
        deliveries: Unacked,
        verdict: Verdict,
        queues: &mut Queues,
    ) {
        let Some(oldest) = deliveries.oldest() else {
            return;
        };
        let settling = self.of_channels.entry(key).or_default();
        if verdict.is_return() {
            settling.begin_return(oldest.queue, queues);
        }
        settling.runs.push_back(Run {
            deliveries,
            verdict,
        });
    }

    /// Stops a queue for a channel's returns, if it returns anything.
    pub(crate) fn begin_return(&mut self, key: ChannelKey, queue: QueueKey, queues: &mut Queues) {
        if let Some(settling) = self.of_channels.get_mut(&key) {
            settling.begin_return(queue, queues);
        }
    }

    /// Whether earlier answers of a channel are not processed yet.
    pub(crate) fn has(&self, key: ChannelKey) -> bool {
        self.of_channels.contains_key(&key)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.of_channels.is_empty()
    }

    /// Takes a channel's unprocessed answers; [`Self::put`] puts the rest back.
    pub(crate) fn take(&mut self, key: ChannelKey) -> Option<Settling> {
        self.of_channels.remove(&key)
    }

    pub(crate) fn put(&mut self, key: ChannelKey, settling: Settling) {
        self.of_channels.insert(key, settling);
    }

    /// The channel after the last one, if there are any.
    pub(crate) fn next_channel(&mut self) -> Option<ChannelKey> {
        let after = self.last.map_or(Unbounded, Excluded);
        let mut behind = self.of_channels.range((after, Unbounded));
        let next = behind.next().or_else(|| self.of_channels.first_key_value());
        self.last = next.map(|(key, _)| *key);
        self.last
    }

    #[cfg(test)]
    pub(crate) fn get(&self, key: ChannelKey) -> Option<&Settling> {
        self.of_channels.get(&key)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Settling> {
        self.of_channels.values()
    }
}

impl Settling {
    /// The next delivery, with its tag and its answer.
    pub(crate) fn next(&mut self) -> Option<(u64, Delivery, Verdict)> {
        while let Some(run) = self.runs.front_mut() {
            if let Some((tag, delivery)) = run.deliveries.take_up_to(u64::MAX) {
                return Some((tag, delivery, run.verdict));
            }
            self.runs.pop_front();
        }
        None
    }

    /// Whether all are processed.
    pub(crate) fn is_done(&self) -> bool {
        self.runs.iter().all(|run| run.deliveries.len() == 0)
    }

    /// Begins the return of messages to a queue; returns whether the queue exists.
    pub(crate) fn begin_return(&mut self, key: QueueKey, queues: &mut Queues) -> bool {
        if self.returning.contains(&key) {
            return queues.find(key).is_some();
        }
        let is_there = queues.begin_return(key);
        if is_there {
            self.returning.insert(key);
        }
        is_there
    }

    /// The queues that have waited for this.
    pub(crate) fn into_returning(self) -> BTreeSet<QueueKey> {
        self.returning
    }

    pub(crate) fn deliveries(&self) -> impl Iterator<Item = (u64, &Delivery)> {
        self.runs.iter().flat_map(|run| run.deliveries.iter())
    }

    #[cfg(test)]
    pub(crate) fn returning(&self) -> impl Iterator<Item = QueueKey> {
        self.returning.iter().copied()
    }
}
