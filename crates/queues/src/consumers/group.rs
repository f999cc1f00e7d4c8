//! The consumers that a channel has of one queue.
//!
//! If all consumers of a channel stop, because of its limit (`basic.qos` with `global`) or a full connection, each
//! group stops in one step. A channel may have ten thousand consumers of one queue, and an acknowledgement makes room
//! for only one message.

use super::consumer::{Consumer, OfOneQueue};
use super::line::{Line, Rank};
use crate::keys::{ConsumerKey, GroupKey};
use crate::{ChannelKey, QueueKey};

#[derive(Debug)]
pub(super) struct Group {
    pub(super) channel: ChannelKey,
    pub(super) queue: QueueKey,
    /// Number of consumers.
    pub(super) consumers: usize,
    /// Consumers that may have room. One that turns out to be at its limit leaves the line, and returns behind its
    /// equals.
    pub(super) line: Line<ConsumerKey>,
    /// The group's place in the queue's line, which is that of its first consumer. `None`: it has none, or waits.
    pub(super) rank: Option<Rank>,
    /// Its number among the groups of its channel that wait for room.
    pub(super) waiting: Option<u64>,
}

impl Group {
    pub(super) fn new(channel: ChannelKey, queue: QueueKey) -> Self {
        Self {
            channel,
            queue,
            consumers: 0,
            line: Line::default(),
            rank: None,
            waiting: None,
        }
    }

    /// Adds a consumer of this group to its line, behind its equals.
    #[inline]
    pub(super) fn line_up(
        &mut self,
        key: ConsumerKey,
        consumer: &mut Consumer,
        queue: &mut OfOneQueue,
    ) {
        consumer.rank = queue.rank_behind(consumer.seat.priority);
        self.line.insert(consumer.rank, key);
        self.place(consumer.group, queue);
    }

    /// Moves the group after a change of its line or its waiting.
    pub(super) fn place(&mut self, key: GroupKey, queue: &mut OfOneQueue) {
        let rank = match self.waiting {
            Some(_) => None,
            None => self.line.first().map(|(rank, _)| rank),
        };
        if rank == self.rank {
            return;
        }
        if let Some(rank) = self.rank {
            queue.line.remove(rank);
        }
        if let Some(rank) = rank {
            queue.line.insert(rank, key);
        }
        self.rank = rank;
    }
}
