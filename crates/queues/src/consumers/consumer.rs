//! A consumer, and the state of all consumers of a queue and of a channel.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::line::{Line, Rank};
use crate::keys::{ConsumerKey, GroupKey};
use crate::streams::Reader;
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
    /// Its successor starts when all its deliveries are acknowledged or returned.
    pub(super) is_awaited: bool,
    pub(crate) unacked: usize,
    /// Its place in a stream.
    pub(crate) reader: Option<Box<Reader>>,
    pub(super) turn: Turn,
}

/// Whether a consumer is in line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    InLine,
    /// At its own limit.
    Blocked,
    /// Another consumer is the single active one.
    Inactive,
    /// It reads a stream, and has no message to be sent.
    Waiting,
}

/// The consumers of one queue.
#[derive(Debug, Default)]
pub(super) struct OfOneQueue {
    /// By priority, then in the order of their `basic.consume`.
    pub(super) consumers: Line<ConsumerKey>,
    /// Groups in turn that may have room. A group that turns out to have none leaves the line, and returns when that
    /// changes.
    pub(super) line: Line<GroupKey>,
    pub(super) last_turn: u64,
    pub(super) exclusive: Option<ConsumerKey>,
    /// Set for a queue with `x-single-active-consumer`.
    pub(super) active: Option<ConsumerKey>,
    /// Unsettled deliveries of active consumers that have left. The next consumer starts when all are acknowledged or
    /// returned, so that it is sent them in their order.
    pub(super) awaited: usize,
}

/// The consumers of one channel.
#[derive(Debug, Default)]
pub(super) struct OfOneChannel {
    pub(super) by_tag: BTreeMap<Arc<str>, ConsumerKey>,
    /// By queue.
    pub(super) groups: BTreeMap<QueueKey, GroupKey>,
    /// Groups that found no room when they had a turn, in that order.
    pub(super) waiting: BTreeMap<u64, GroupKey>,
    last_waiting: u64,
}

impl Consumer {
    /// Whether it is at its prefetch limit.
    #[inline]
    pub(super) fn is_at_limit(&self) -> bool {
        let max = self.prefetch_count;
        !self.no_ack && max != 0 && self.unacked >= max.into()
    }

    /// Whether it does not wait behind a single active consumer.
    pub(crate) fn is_active(&self) -> bool {
        self.turn != Turn::Inactive
    }
}

impl OfOneQueue {
    /// A place in line behind all with this priority.
    pub(super) fn rank_behind(&mut self, priority: Reverse<i64>) -> Rank {
        self.last_turn += 1;
        Rank {
            priority,
            turn: self.last_turn,
        }
    }
}

impl OfOneChannel {
    /// Adds a group to those that wait for room; returns its number.
    pub(super) fn wait(&mut self, group: GroupKey) -> u64 {
        self.last_waiting += 1;
        self.waiting.insert(self.last_waiting, group);
        self.last_waiting
    }
}
