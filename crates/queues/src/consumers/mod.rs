//! Consumers, and their turns to be sent a queue's next message.
//!
//! ```text
//! add ─▶ next ─▶ send ─▶ (the channel holds it) ─▶ settle ─▶ take_unblocked
//!         │                                           │
//!         └─▶ a group whose channel has no room waits ┴▶ stop_waiting
//! ```
//!
//! It keeps the consumers of each queue and each channel, and their order. Queues and channels are only keys here. It
//! borrows the channels, to check for room and to send. *Never:* a queued message, a confirm.

mod consumer;
mod group;
#[cfg(test)]
mod invariants;
mod line;
mod turns;

pub(crate) use self::consumer::Consumer;
pub(crate) use self::turns::{Next, Sent};

use std::cmp::Reverse;
use std::collections::VecDeque;
use std::sync::Arc;

use crosstie_collections::{Beside, Slab};

use self::consumer::{OfOneChannel, OfOneQueue, Turn};
use self::group::Group;
use self::line::Line;
use crate::keys::{ConsumerKey, OfChannel, OfConsumer, OfGroup, OfQueue};
use crate::streams::Reader;
use crate::{ChannelKey, QueueKey};

#[derive(Debug)]
pub(crate) struct Consumers {
    consumers: Slab<OfConsumer, Consumer>,
    groups: Slab<OfGroup, Group>,
    /// Of queues that have had consumers.
    of_queues: Beside<OfQueue, OfOneQueue>,
    /// Of channels that have had consumers.
    of_channels: Beside<OfChannel, OfOneChannel>,
    /// Queues with a consumer that has room again. Empty between inputs, and used again.
    unblocked: Vec<QueueKey>,
    /// Consumers of deleted queues that have not been told.
    orphans: VecDeque<Line<ConsumerKey>>,
}

/// The options of a `basic.consume`.
pub(crate) struct NewConsumer {
    pub(crate) channel: ChannelKey,
    pub(crate) queue: QueueKey,
    pub(crate) tag: Arc<str>,
    pub(crate) priority: i64,
    pub(crate) no_ack: bool,
    pub(crate) is_exclusive: bool,
    pub(crate) prefetch_count: u16,
    /// Whether the queue has a single active consumer.
    pub(crate) single_active: SingleActive,
    /// Its place, if the queue is a stream.
    pub(crate) reader: Option<Box<Reader>>,
}

/// Whether a queue has a single active consumer (`x-single-active-consumer`), and how its successor is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SingleActive {
    No,
    /// The one with the highest priority, once all deliveries of the former one are settled: classic queues.
    ByPriority,
    /// The one that has waited longest, at once: quorum queues.
    ByOrder,
}

/// A consumer that was removed.
pub(crate) struct Left {
    pub(crate) consumer: Consumer,
    /// It was the last consumer of its queue.
    pub(crate) is_last: bool,
}

/// Adding and removing of consumers.
impl Consumers {
    pub(crate) fn new() -> Self {
        Self {
            consumers: Slab::new(),
            groups: Slab::new(),
            of_queues: Beside::new(),
            of_channels: Beside::new(),
            unblocked: Vec::new(),
            orphans: VecDeque::new(),
        }
    }

    pub(crate) fn add(&mut self, new: NewConsumer) {
        let queue = self.of_queues.entry(new.queue, OfOneQueue::default);
        let channel = self.of_channels.entry(new.channel, OfOneChannel::default);
        let group = channel.groups.entry(new.queue);
        let group =
            *group.or_insert_with(|| self.groups.insert(Group::new(new.channel, new.queue)));
        if let Some(group) = self.groups.find_mut(group) {
            group.consumers += 1;
        }
        let urgency = match new.single_active {
            SingleActive::ByOrder => 0,
            SingleActive::No | SingleActive::ByPriority => new.priority,
        };
        let seat = queue.rank_behind(Reverse(urgency));
        let key = self.consumers.insert(Consumer {
            channel: new.channel,
            queue: new.queue,
            tag: new.tag.clone(),
            group,
            priority: new.priority,
            seat,
            rank: seat,
            no_ack: new.no_ack,
            is_exclusive: new.is_exclusive,
            prefetch_count: new.prefetch_count,
            is_awaited: new.single_active == SingleActive::ByPriority,
            unacked: 0,
            reader: new.reader,
            turn: Turn::Inactive,
        });
        channel.by_tag.insert(new.tag, key);
        queue.consumers.insert(seat, key);
        if new.is_exclusive {
            queue.exclusive = Some(key);
        }
        let is_one_of_many = new.single_active == SingleActive::No;
        if is_one_of_many || queue.active.is_none() {
            queue.active = (!is_one_of_many).then_some(key);
            if queue.awaited == 0 {
                self.line_up(key);
            }
        }
    }

    /// Removes the consumer with that tag from its queue.
    pub(crate) fn cancel(&mut self, channel: ChannelKey, tag: &str) -> Option<Left> {
        let key = self.of_channels.find_mut(channel)?.by_tag.remove(tag)?;
        self.remove(key)
    }

    /// Removes some consumer of a channel, if there is one.
    pub(crate) fn cancel_first(&mut self, channel: ChannelKey) -> Option<Left> {
        let (_, key) = self.of_channels.find_mut(channel)?.by_tag.pop_first()?;
        self.remove(key)
    }

    fn remove(&mut self, key: ConsumerKey) -> Option<Left> {
        let consumer = self.consumers.remove(key)?;
        self.leave_group(&consumer);
        let mut is_last = false;
        if let Some(queue) = self.of_queues.find_mut(consumer.queue) {
            queue.consumers.remove(consumer.seat);
            queue.exclusive.take_if(|consumer| *consumer == key);
            is_last = queue.consumers.is_empty();
            if queue.active == Some(key) {
                if consumer.is_awaited {
                    queue.awaited += consumer.unacked;
                }
                queue.active = queue.consumers.first().map(|(_, next)| next);
                if let Some(next) = queue.active.filter(|_| queue.awaited == 0) {
                    self.line_up(next);
                }
            }
        }
        Some(Left { consumer, is_last })
    }

    /// Ends a queue; [`Self::lose_next`] removes its consumers.
    pub(crate) fn end_queue(&mut self, key: QueueKey) {
        if let Some(queue) = self.of_queues.remove(key)
            && !queue.consumers.is_empty()
        {
            self.orphans.push_back(queue.consumers);
        }
    }

    /// Removes a consumer whose queue was deleted, if any is left. The inner value is `None` if that consumer has left
    /// by itself.
    pub(crate) fn lose_next(&mut self) -> Option<Option<Consumer>> {
        let orphans = self.orphans.front_mut()?;
        let Some((seat, key)) = orphans.first() else {
            self.orphans.pop_front();
            return Some(None);
        };
        orphans.remove(seat);
        let Some(consumer) = self.consumers.remove(key) else {
            return Some(None);
        };
        self.leave_group(&consumer);
        if let Some(channel) = self.of_channels.find_mut(consumer.channel) {
            channel.by_tag.remove(&consumer.tag);
        }
        Some(Some(consumer))
    }

    pub(crate) fn has_orphans(&self) -> bool {
        !self.orphans.is_empty()
    }

    /// Ends a channel whose consumers have all been removed.
    pub(crate) fn end_channel(&mut self, key: ChannelKey) {
        self.of_channels.remove(key);
    }

    /// Removes a consumer from its group, and the group with its last consumer.
    fn leave_group(&mut self, consumer: &Consumer) {
        let Some(group) = self.groups.find_mut(consumer.group) else {
            return;
        };
        group.consumers -= 1;
        if consumer.turn == Turn::InLine {
            group.line.remove(consumer.rank);
            if let Some(queue) = self.of_queues.find_mut(consumer.queue) {
                group.place(consumer.group, queue);
            }
        }
        if group.consumers > 0 {
            return;
        }
        let waiting = group.waiting;
        if let Some(channel) = self.of_channels.find_mut(consumer.channel) {
            channel.groups.remove(&consumer.queue);
            if let Some(number) = waiting {
                channel.waiting.remove(&number);
            }
        }
        self.groups.remove(consumer.group);
    }
}

/// Read access for the other rooms.
impl Consumers {
    pub(crate) fn len(&self) -> usize {
        self.consumers.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Consumer> {
        self.consumers.iter().map(|(_, consumer)| consumer)
    }

    /// Size of the table, free places included.
    pub(crate) fn places(&self) -> usize {
        self.consumers.places()
    }

    /// The consumers at that many places, from `place` on.
    pub(crate) fn part(&self, place: usize, places_max: usize) -> impl Iterator<Item = &Consumer> {
        let part = self.consumers.part(place, places_max);
        part.map(|(_, consumer)| consumer)
    }

    /// The consumers of a queue, in the order of their priorities.
    pub(crate) fn of_queue(&self, queue: QueueKey) -> impl Iterator<Item = &Consumer> {
        let queue = self.of_queues.find(queue).into_iter();
        let keys = queue.flat_map(|queue| queue.consumers.iter());
        keys.filter_map(|(_, key)| self.consumers.find(key))
    }

    /// The tags of a queue's exclusive consumer, and of its single active one.
    pub(crate) fn chosen(&self, queue: QueueKey) -> [Option<Arc<str>>; 2] {
        let Some(queue) = self.of_queues.find(queue) else {
            return [None, None];
        };
        [queue.exclusive, queue.active].map(|chosen| {
            let consumer = self.consumers.find(chosen?)?;
            Some(consumer.tag.clone())
        })
    }

    /// The place of a consumer in its stream.
    #[inline]
    pub(crate) fn reader_mut(&mut self, key: ConsumerKey) -> Option<&mut Reader> {
        self.consumers.find_mut(key)?.reader.as_deref_mut()
    }

    /// Takes it, to borrow it beside the consumers; [`Self::put_reader`] returns it.
    pub(crate) fn take_reader(&mut self, key: ConsumerKey) -> Option<Box<Reader>> {
        self.consumers.find_mut(key)?.reader.take()
    }

    pub(crate) fn put_reader(&mut self, key: ConsumerKey, reader: Box<Reader>) {
        if let Some(consumer) = self.consumers.find_mut(key) {
            consumer.reader = Some(reader);
        }
    }

    pub(crate) fn is_there(&self, key: ConsumerKey) -> bool {
        self.consumers.find(key).is_some()
    }

    pub(crate) fn has_tag(&self, channel: ChannelKey, tag: &str) -> bool {
        let channel = self.of_channels.find(channel);
        channel.is_some_and(|channel| channel.by_tag.contains_key(tag))
    }

    pub(crate) fn count_of_channel(&self, channel: ChannelKey) -> usize {
        let channel = self.of_channels.find(channel);
        channel.map_or(0, |channel| channel.by_tag.len())
    }

    /// The queues that a channel consumes.
    pub(crate) fn queues_of_channel(&self, channel: ChannelKey) -> impl Iterator<Item = QueueKey> {
        let channel = self.of_channels.find(channel).into_iter();
        channel.flat_map(|channel| channel.groups.keys().copied())
    }

    pub(crate) fn count_of_queue(&self, queue: QueueKey) -> usize {
        let queue = self.of_queues.find(queue);
        queue.map_or(0, |queue| queue.consumers.len())
    }

    /// Whether a queue had consumers, and has none any more.
    pub(crate) fn have_left(&self, queue: QueueKey) -> bool {
        let queue = self.of_queues.find(queue);
        queue.is_some_and(|queue| queue.consumers.is_empty())
    }

    pub(crate) fn is_exclusive(&self, queue: QueueKey) -> bool {
        let queue = self.of_queues.find(queue);
        queue.is_some_and(|queue| queue.exclusive.is_some())
    }
}
