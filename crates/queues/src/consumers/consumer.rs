//! A consumer, and what consumers have in common by their queue and by their channel.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::line::{Line, Rank};
use crate::keys::{ConsumerKey, GroupKey};
use crate::{ChannelKey, QueueKey};

#[derive(Debug)]
pub(crate) struct Consumer {
    pub(crate) channel: ChannelKey,
    pub(crate) queue: QueueKey,
    pub(crate) tag: Arc<str>,
    pub(super) group: GroupKey,
    /// `x-priority`.
    pub(crate) priority: i64,
    /// Its place among all consumers of its queue.
    pub(super) seat: Rank,
    /// Its place in line.
    pub(super) rank: Rank,
    pub(crate) no_ack: bool,
    pub(crate) is_exclusive: bool,
    /// 0: without limit.
    pub(crate) prefetch_count: u16,
    /// Its successor begins when all that it holds is acknowledged or back in the queue.
    pub(super) is_awaited: bool,
    pub(crate) unacked: usize,
    pub(super) turn: Turn,
}

/// Whether a consumer is in line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    InLine,
    /// At its own limit.
    Blocked,
    /// Another one is the single active consumer.
    Inactive,
}

/// The consumers of one queue.
#[derive(Debug, Default)]
pub(super) struct OfOneQueue {
    /// By priority, and in the order in which they came.
    pub(super) consumers: Line<ConsumerKey>,
    /// Whose turn it is: groups that nothing is known against. One that turns out to have no room
    /// leaves, and comes back by what changes that.
    pub(super) line: Line<GroupKey>,
    pub(super) last_turn: u64,
    pub(super) exclusive: Option<ConsumerKey>,
    /// Of a queue with `x-single-active-consumer`.
    pub(super) active: Option<ConsumerKey>,
    /// Deliveries of active consumers that have left: the next one begins when all of them are
    /// acknowledged or back in the queue, so that it is sent them in their order.
    pub(super) awaited: usize,
}

/// The consumers of one channel.
#[derive(Debug, Default)]
pub(super) struct OfOneChannel {
    pub(super) by_tag: BTreeMap<Arc<str>, ConsumerKey>,
    /// By queue.
    pub(super) groups: BTreeMap<QueueKey, GroupKey>,
    /// Groups that found no room when they could have been given something, in that order.
    pub(super) waiting: BTreeMap<u64, GroupKey>,
    last_waiting: u64,
}

impl Consumer {
    /// Whether it has to acknowledge something before it is sent more.
    #[inline]
    pub(super) fn is_at_limit(&self) -> bool {
        let max = self.prefetch_count;
        !self.no_ack && max != 0 && self.unacked >= max.into()
    }

    /// Whether it is not waiting behind a single active consumer.
    pub(crate) fn is_active(&self) -> bool {
        self.turn != Turn::Inactive
    }
}

impl OfOneQueue {
    /// A place in line behind all that have this priority.
    pub(super) fn rank_behind(&mut self, priority: Reverse<i64>) -> Rank {
        self.last_turn += 1;
        Rank {
            priority,
            turn: self.last_turn,
        }
    }
}

impl OfOneChannel {
    /// A group waits for room, behind those that do. Returns its number.
    pub(super) fn wait(&mut self, group: GroupKey) -> u64 {
        self.last_waiting += 1;
        self.waiting.insert(self.last_waiting, group);
        self.last_waiting
    }
}
