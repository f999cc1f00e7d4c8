//! The messages that exchanges hold back until they are due: their buckets, and those that are due soon.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use super::entry::Entry;
use super::wheel::Place;
use crate::topology::ExchangeKey;
use crate::{QueueKey, Time};

/// The delayed messages of a vhost.
#[derive(Debug, Default)]
pub(crate) struct Delays {
    pub(super) exchanges: BTreeMap<ExchangeKey, Line>,
    /// The messages that are due in the next seconds.
    pub(super) near: BinaryHeap<Reverse<Near>>,
    pub(super) near_bytes: usize,
    /// The buckets that are not open, and when they are to be opened.
    pub(super) openings: BTreeSet<(Time, QueueKey)>,
    /// Open buckets of whose messages some had no room among the near ones. The first one moves on once there is room.
    pub(super) crowded: BTreeSet<(Time, QueueKey)>,
    pub(super) messages: usize,
}

/// Those of one exchange.
#[derive(Debug, Default)]
pub(super) struct Line {
    pub(super) buckets: BTreeMap<Place, QueueKey>,
    pub(super) messages: usize,
}

/// A message that is due soon; the earliest is the least one.
#[derive(Debug)]
pub(super) struct Near {
    pub(super) due: Time,
    pub(super) place: i64,
    pub(super) bucket: QueueKey,
    pub(super) entry: Entry,
}

/// A delayed message that is due.
pub(crate) struct Due {
    pub(crate) exchange: ExchangeKey,
    pub(crate) entry: Entry,
    pub(super) bucket: QueueKey,
}

pub(super) fn near_bytes(entry: &Entry) -> usize {
    entry.content.memory_bytes() + size_of::<Near>()
}

impl Near {
    fn order(&self) -> (Time, QueueKey, i64) {
        (self.due, self.bucket, self.place)
    }
}

impl PartialEq for Near {
    fn eq(&self, other: &Self) -> bool {
        self.order() == other.order()
    }
}

impl Eq for Near {}

impl PartialOrd for Near {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Near {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.order().cmp(&other.order())
    }
}
