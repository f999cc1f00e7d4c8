//! The consumers that a channel has of one queue.
//!
//! A stop for all consumers of a channel, its limit (`basic.qos` with `global`) or a connection that
//! takes nothing, stops such a group in one step and not each of them: a channel may have ten
//! thousand consumers of one queue, and an acknowledgement makes room for one message.

use super::consumer::{Consumer, OfOneQueue};
use super::line::{Line, Rank};
use crate::keys::{ConsumerKey, GroupKey};
use crate::{ChannelKey, QueueKey};

#[derive(Debug)]
pub(super) struct Group {
    pub(super) channel: ChannelKey,
    pub(super) queue: QueueKey,
    /// How many there are.
    pub(super) consumers: usize,
    /// Consumers that nothing is known against themselves. One that turns out to be at its own limit
    /// leaves, and comes back behind its equals.
    pub(super) line: Line<ConsumerKey>,
    /// Where it stands in the queue's line: at the place of its own first. None: it has none, or it
    /// waits.
    pub(super) rank: Option<Rank>,
    /// Its number among those of its channel that wait for room.
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

    /// Puts a consumer of this group, which is not in its line, behind its equals.
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

    /// After its line or its waiting has changed: moves it to where it stands now.
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
