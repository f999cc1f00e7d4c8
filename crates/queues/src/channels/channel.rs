//! A channel: its unacknowledged deliveries, and its limits.

use std::cell::Cell;
use std::sync::Arc;

use super::unacked::Unacked;
use crate::keys::ConsumerKey;
use crate::{ChannelKey, ChannelTally, ConnectionKey, Deliveries, Time};

#[derive(Debug)]
pub(crate) struct Channel {
    pub(crate) connection: ConnectionKey,
    pub(crate) number: u16,
    /// Closed: its remains are being removed.
    pub(crate) is_closing: bool,
    /// Bytes of `unacked` that its connection is charged with.
    pub(super) unacked_bytes: usize,
    /// The last delivery tag given.
    pub(crate) last_tag: u64,
    pub(crate) unacked: Unacked,
    /// How many of them count against a limit of all consumers together: deliveries to consumers, and those of
    /// `basic.get` before the limit was set.
    pub(super) prefetched: usize,
    /// The last delivery tag when it was set.
    pub(super) limited_at: u64,
    /// For later consumers; 0: without limit.
    pub(crate) prefetch_count: u16,
    /// For all consumers together; 0: without limit.
    pub(crate) prefetch_count_global: u16,
    /// The queue that an empty name means.
    pub(crate) last_queue: Option<Arc<str>>,
    pub(crate) reply_consumer: Option<ReplyConsumer>,
    /// The time of the timer that checks the oldest deliveries.
    pub(super) timer: Option<Time>,
    /// Whether a timer delivers what a higher limit allows.
    pub(super) has_room_timer: bool,
    /// Publications. A cell, because it is counted while others borrow the channel.
    pub(crate) published: Cell<u64>,
    /// Publications that were returned, and those that were dropped, because they had no route.
    pub(crate) unrouted: [u64; 2],
    /// Deliveries that were to be acknowledged, with those of `basic.get`.
    pub(super) held: u64,
    /// Without [`Deliveries::sent`] and [`Deliveries::sent_to_ack`], which follow from the others and the delivery tags.
    pub(super) out: Deliveries,
}

/// A consumer of `amq.rabbitmq.reply-to`.
#[derive(Debug)]
pub(crate) struct ReplyConsumer {
    pub(crate) tag: Arc<str>,
    /// The routing key that leads to it, and that its requests carry as `reply-to`.
    pub(crate) address: Arc<str>,
}

/// The timers of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ChannelTimer {
    /// Its oldest delivery may be too old.
    Unacked(ChannelKey),
    /// It may have more room.
    Room(ChannelKey),
}

impl Channel {
    pub(super) fn new(connection: ConnectionKey, number: u16) -> Self {
        Self {
            connection,
            number,
            is_closing: false,
            unacked_bytes: 0,
            last_tag: 0,
            unacked: Unacked::default(),
            prefetched: 0,
            limited_at: 0,
            prefetch_count: 0,
            prefetch_count_global: 0,
            last_queue: None,
            reply_consumer: None,
            timer: None,
            has_room_timer: false,
            published: Cell::new(0),
            unrouted: [0; 2],
            held: 0,
            out: Deliveries::default(),
        }
    }

    /// Whether its consumers are sent nothing, including those without acknowledgements.
    #[inline]
    pub(crate) fn is_at_limit(&self) -> bool {
        let max = self.prefetch_count_global;
        max != 0 && self.prefetched >= max.into()
    }

    /// Stops all deliveries: sets a limit that no acknowledgement frees.
    pub(super) fn shut(&mut self) {
        self.is_closing = true;
        self.prefetch_count_global = 1;
        self.prefetched = usize::MAX / 2;
        self.reply_consumer = None;
    }

    /// Counts a publication; returns whether it is the first.
    #[inline(always)]
    pub(crate) fn count_published(&self) -> bool {
        let published = self.published.get();
        self.published.set(published + 1);
        published == 0
    }

    /// Its counters; the confirms are in another room.
    pub(crate) fn tally(&self, confirmed: u64) -> ChannelTally {
        let out = self.out;
        let [returned, dropped] = self.unrouted;
        ChannelTally {
            published: self.published.get(),
            confirmed,
            returned,
            dropped,
            out: Deliveries {
                sent: self.last_tag.saturating_sub(out.got + out.got_no_ack),
                sent_to_ack: self.held.saturating_sub(out.got),
                ..out
            },
        }
    }

    /// Whether a delivery counts against the limit of all consumers together.
    pub(crate) fn counts(&self, tag: u64, consumer: Option<ConsumerKey>) -> bool {
        consumer.is_some() || tag <= self.limited_at
    }

    #[cfg(test)]
    pub(crate) fn prefetched(&self) -> usize {
        self.prefetched
    }

    pub(super) fn next_tag(&mut self) -> u64 {
        self.last_tag += 1;
        self.last_tag
    }

    /// Whether its consumer of direct replies has that tag.
    pub(crate) fn has_reply_consumer(&self, tag: &str) -> bool {
        let reply = self.reply_consumer.as_ref();
        reply.is_some_and(|reply| *reply.tag == *tag)
    }
}
