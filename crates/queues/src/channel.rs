//! Who is there: connections, their channels, the channels' consumers.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use crosstie_auth::Permissions;

use crate::keys::{ConsumerKey, GroupKey};
use crate::line::Rank;
use crate::shrink::shrink;
use crate::transaction::Transaction;
use crate::unacked::Unacked;
use crate::{ChannelKey, ConnectionKey, QueueKey};

/// Who has connected.
#[derive(Clone, Debug)]
pub struct Client {
    pub user: Arc<str>,
    pub permissions: Arc<Permissions>,
    /// The capability `consumer_cancel_notify`: it wants to be told when a queue goes.
    pub consumer_cancel_notify: bool,
    /// May publish with any `user-id` (RabbitMQ's tag `impersonator`).
    pub is_impersonator: bool,
}

#[derive(Debug)]
pub(crate) struct Connection<H> {
    pub(crate) handle: H,
    pub(crate) client: Client,
    /// It did not take a message; no more are offered until it resumes.
    pub(crate) is_full: bool,
    /// It is gone, and what it has left is worked off.
    pub(crate) is_closing: bool,
    /// Its resumption is not done with all its channels yet.
    pub(crate) is_resuming: bool,
    pub(crate) channels: Vec<ChannelKey>,
    /// Consumers of all its channels.
    pub(crate) consumers: usize,
    /// The exclusive queues that go with it.
    pub(crate) queues: BTreeSet<QueueKey>,
    pub(crate) charge: Charge,
    /// Bytes of what its channels have published and not committed.
    pub(crate) uncommitted_bytes: usize,
}

/// What is held here for a connection beside its messages.
#[derive(Debug, Default)]
pub(crate) struct Charge {
    /// Bytes of which the outbox was told.
    pub(crate) told: isize,
    /// And of which it will be.
    pub(crate) untold: isize,
}

#[derive(Debug)]
pub(crate) struct Channel {
    pub(crate) connection: ConnectionKey,
    pub(crate) number: u16,
    /// It is gone, and what it has left is worked off.
    pub(crate) is_closing: bool,
    /// Bytes of `unacked` that its connection is charged with.
    pub(crate) unacked_bytes: usize,
    /// The last delivery tag given.
    pub(crate) last_tag: u64,
    pub(crate) unacked: Unacked,
    /// How many of them count against a limit of all consumers together: those that consumers
    /// were sent, and those that `basic.get` was given before the limit was set.
    pub(crate) prefetched: usize,
    /// The last delivery tag when it was set.
    pub(crate) limited_at: u64,
    /// For consumers to come; 0: without limit.
    pub(crate) prefetch_count: u16,
    /// For all consumers together; 0: without limit.
    pub(crate) prefetch_count_global: u16,
    pub(crate) consumers: BTreeMap<Arc<str>, ConsumerKey>,
    /// Its consumers of each queue.
    pub(crate) groups: BTreeMap<QueueKey, GroupKey>,
    /// Those that found no room here when they could have been given something, in that order.
    pub(crate) waiting: BTreeMap<u64, GroupKey>,
    pub(crate) last_waiting: u64,
    /// What an empty queue name means.
    pub(crate) last_queue: Option<Arc<str>>,
    pub(crate) confirms: Option<Confirms>,
    /// Since `tx.select`.
    pub(crate) transaction: Option<Box<Transaction>>,
    pub(crate) reply_consumer: Option<ReplyConsumer>,
    /// A timer looks at the oldest delivery.
    pub(crate) has_timer: bool,
    /// A timer gives what a higher limit has made room for.
    pub(crate) has_room_timer: bool,
}

/// What a channel in confirm mode has been promised.
#[derive(Debug, Default)]
pub(crate) struct Confirms {
    /// The last publication's number.
    pub(crate) last: u64,
    /// How many wait for a store.
    pub(crate) waiting: usize,
    /// By which numbers they do, oldest first; some of them may have been told meanwhile.
    pub(crate) line: VecDeque<u64>,
    /// Confirmed and not told yet, with nothing before them that waits.
    pub(crate) ready: Option<Ready>,
    /// Confirmed and not told yet, perhaps with something before them that waits.
    pub(crate) early: Vec<u64>,
}

/// Publications that are told of together.
#[derive(Debug)]
pub(crate) struct Ready {
    /// The last one's number.
    pub(crate) to: u64,
    pub(crate) count: u64,
}

impl Ready {
    /// One more, of which there may have been none.
    pub(crate) fn add(ready: &mut Option<Self>, tag: u64) {
        let (to, count) = ready
            .as_ref()
            .map_or((0, 0), |ready| (ready.to, ready.count));
        *ready = Some(Self {
            to: to.max(tag),
            count: count + 1,
        });
    }
}

impl Confirms {
    /// There is something to be told.
    pub(crate) fn has_news(&self) -> bool {
        self.ready.is_some() || !self.early.is_empty()
    }

    /// Takes what is confirmed behind something that waits, in order; what is not is ready.
    pub(crate) fn take_early(&mut self, publication: impl Fn(u64) -> Option<u64>) -> Vec<u64> {
        let first_waiting = self.first_waiting(publication);
        let mut early = std::mem::take(&mut self.early);
        early.retain(|tag| {
            let is_ready = first_waiting.is_none_or(|waiting| *tag < waiting);
            if is_ready {
                Ready::add(&mut self.ready, *tag);
            }
            !is_ready
        });
        early.sort_unstable();
        early
    }

    /// The first publication that waits; `publication` finds it by its number, while it does.
    fn first_waiting(&mut self, publication: impl Fn(u64) -> Option<u64>) -> Option<u64> {
        while let Some(number) = self.line.front() {
            if let Some(tag) = publication(*number) {
                return Some(tag);
            }
            self.line.pop_front();
        }
        shrink(&mut self.line);
        None
    }
}

/// A consumer of `amq.rabbitmq.reply-to`.
#[derive(Debug)]
pub(crate) struct ReplyConsumer {
    pub(crate) tag: Arc<str>,
    /// The routing key that leads to it, and that its requests carry as `reply-to`.
    pub(crate) address: Arc<str>,
}

#[derive(Debug)]
pub(crate) struct Consumer {
    pub(crate) channel: ChannelKey,
    pub(crate) queue: QueueKey,
    pub(crate) tag: Arc<str>,
    pub(crate) group: GroupKey,
    /// Its place among all consumers of its queue.
    pub(crate) seat: Rank,
    /// Its place in line.
    pub(crate) rank: Rank,
    pub(crate) no_ack: bool,
    pub(crate) is_exclusive: bool,
    /// 0: without limit.
    pub(crate) prefetch_count: u16,
    pub(crate) unacked: usize,
    pub(crate) turn: Turn,
}

/// Whether a consumer is in line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    InLine,
    /// At its own limit.
    Blocked,
    /// Another one is the single active consumer.
    Inactive,
}

impl Channel {
    /// Whether its consumers are sent nothing, even those that acknowledge nothing.
    pub(crate) fn is_at_limit(&self) -> bool {
        is_at(self.prefetched, self.prefetch_count_global)
    }

    /// Nothing is sent to it any more: it is at a limit that no acknowledgement takes it below.
    pub(crate) fn shut(&mut self) {
        self.is_closing = true;
        self.prefetch_count_global = 1;
        self.prefetched = usize::MAX / 2;
        self.confirms = None;
        self.reply_consumer = None;
    }

    /// Whether a delivery counts against the limit of all consumers together.
    pub(crate) fn counts(&self, tag: u64, consumer: Option<ConsumerKey>) -> bool {
        consumer.is_some() || tag <= self.limited_at
    }

    /// A group waits for room, behind those that do. Returns its number.
    pub(crate) fn wait(&mut self, group: GroupKey) -> u64 {
        self.last_waiting += 1;
        self.waiting.insert(self.last_waiting, group);
        self.last_waiting
    }

    pub(crate) fn next_tag(&mut self) -> u64 {
        self.last_tag += 1;
        self.last_tag
    }

    pub(crate) fn has_consumer(&self, tag: &str) -> bool {
        self.consumers.contains_key(tag)
            || self
                .reply_consumer
                .as_ref()
                .is_some_and(|reply| *reply.tag == *tag)
    }
}

impl Consumer {
    /// Whether it has to acknowledge something before it is sent more.
    pub(crate) fn is_at_limit(&self) -> bool {
        !self.no_ack && is_at(self.unacked, self.prefetch_count)
    }
}

fn is_at(count: usize, max: u16) -> bool {
    max != 0 && count >= max.into()
}
