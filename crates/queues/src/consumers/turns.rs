//! The turns of consumers: by priority, then in rotation, while they have room.

use super::Consumers;
use super::consumer::Turn;
use crate::channels::{Channels, Outgoing};
use crate::keys::{ConsumerKey, GroupKey};
use crate::steps::Steps;
use crate::{ChannelKey, Outbox, QueueKey, Refused};

/// The consumer whose turn it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Next {
    consumer: ConsumerKey,
    /// No other consumer could take the next turn.
    is_alone: bool,
}

impl Next {
    pub(crate) fn consumer(self) -> ConsumerKey {
        self.consumer
    }
}

/// A message that was sent to a consumer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    pub(crate) channel: ChannelKey,
    pub(crate) consumer: ConsumerKey,
    pub(crate) tag: u64,
    pub(crate) needs_ack: bool,
}

/// The state of the first in a queue's line.
enum First {
    Ready(Next),
    /// Its channel or its connection has no room.
    NoRoom(GroupKey),
    /// It is at its prefetch limit.
    AtLimit(ConsumerKey),
}

impl Consumers {
    /// The consumer whose turn it is. It keeps its place until it is sent something.
    #[inline]
    pub(crate) fn next<H>(
        &mut self,
        key: QueueKey,
        channels: &Channels<H>,
        steps: &mut Steps,
    ) -> Option<Next> {
        match self.first_in_line(key, channels)? {
            First::Ready(next) => Some(next),
            first => self.next_behind(key, first, channels, steps),
        }
    }

    /// The same, when the first leaves the line for another. Out of line: a loop around the usual case costs it
    /// registers, 4 to 16 instructions a message, depending on how it was written.
    #[inline(never)]
    fn next_behind<H>(
        &mut self,
        key: QueueKey,
        mut first: First,
        channels: &Channels<H>,
        steps: &mut Steps,
    ) -> Option<Next> {
        loop {
            steps.spend(1);
            match first {
                First::Ready(next) => return Some(next),
                First::NoRoom(group) => self.await_room(group),
                First::AtLimit(consumer) => self.block(consumer),
            }
            first = self.first_in_line(key, channels)?;
        }
    }

    #[inline(always)]
    fn first_in_line<H>(&self, key: QueueKey, channels: &Channels<H>) -> Option<First> {
        let queue = self.of_queues.find(key)?;
        let group_key = queue.line.first_key()?;
        let group = self.groups.find(group_key)?;
        if !channels.has_room(group.channel)? {
            return Some(First::NoRoom(group_key));
        }
        let consumer_key = group.line.first_key()?;
        if self.consumers.find(consumer_key)?.is_at_limit() {
            return Some(First::AtLimit(consumer_key));
        }
        Some(First::Ready(Next {
            consumer: consumer_key,
            is_alone: group.line.has_one() && queue.line.has_one(),
        }))
    }

    /// Sends to the consumer whose turn it is, and ends its turn. A consumer whose connection refuses the message does
    /// not stay first.
    #[inline]
    pub(crate) fn send<H>(
        &mut self,
        next: Next,
        outgoing: &Outgoing<'_>,
        channels: &mut Channels<H>,
        out: &mut dyn Outbox<H>,
    ) -> Result<Sent, Refused> {
        let consumer = self.consumers.find_mut(next.consumer);
        let consumer = consumer.ok_or(Refused::Gone)?;
        let needs_ack = !consumer.no_ack;
        let tag = channels.deliver(consumer.channel, &consumer.tag, needs_ack, outgoing, out)?;
        consumer.unacked += usize::from(needs_ack);
        let channel = consumer.channel;
        if !next.is_alone {
            self.pass_turn(next.consumer);
        }
        Ok(Sent {
            channel,
            consumer: next.consumer,
            tag,
            needs_ack,
        })
    }

    /// Removes a delivery from its consumer. If the consumer has room again, its queue is among those of
    /// [`Self::take_unblocked`].
    #[inline(always)]
    pub(crate) fn settle(&mut self, key: ConsumerKey, queue: QueueKey) {
        let Some(consumer) = self.consumers.find_mut(key) else {
            return self.settle_of_gone(queue);
        };
        consumer.unacked = consumer.unacked.saturating_sub(1);
        if consumer.turn == Turn::Blocked && !consumer.is_at_limit() {
            self.unblocked.push(consumer.queue);
            self.line_up(key);
        }
    }

    /// The same for a consumer that has left. After the last delivery of an active consumer its successor starts.
    #[cold]
    fn settle_of_gone(&mut self, key: QueueKey) {
        let Some(queue) = self.of_queues.find_mut(key) else {
            return;
        };
        if queue.awaited == 0 {
            return;
        }
        queue.awaited -= 1;
        if let Some(next) = queue.active.filter(|_| queue.awaited == 0) {
            self.unblocked.push(key);
            self.line_up(next);
        }
    }

    #[inline]
    pub(crate) fn has_unblocked(&self) -> bool {
        !self.unblocked.is_empty()
    }

    /// Takes the queues with a consumer that has room again. [`Self::reuse`] returns the empty vector.
    pub(crate) fn take_unblocked(&mut self) -> Vec<QueueKey> {
        let mut queues = std::mem::take(&mut self.unblocked);
        queues.sort_unstable();
        queues.dedup();
        queues
    }

    pub(crate) fn reuse(&mut self, unblocked: Vec<QueueKey>) {
        self.unblocked = unblocked;
    }

    /// Returns the first waiting group of a channel with room to its queue's line. Mostly none waits: inlined up to
    /// that check.
    #[inline(always)]
    pub(crate) fn stop_waiting<H>(
        &mut self,
        key: ChannelKey,
        channels: &Channels<H>,
    ) -> Option<QueueKey> {
        match self.is_waiting(key) {
            true => self.stop_first_waiting(key, channels),
            false => None,
        }
    }

    /// Whether a group waits for a channel's room.
    #[inline(always)]
    pub(crate) fn is_waiting(&self, key: ChannelKey) -> bool {
        let channel = self.of_channels.find(key);
        channel.is_some_and(|channel| !channel.waiting.is_empty())
    }

    fn stop_first_waiting<H>(
        &mut self,
        key: ChannelKey,
        channels: &Channels<H>,
    ) -> Option<QueueKey> {
        loop {
            if !channels.has_room(key)? {
                return None;
            }
            let channel = self.of_channels.find_mut(key)?;
            let (_, group_key): (u64, GroupKey) = channel.waiting.pop_first()?;
            let group = self.groups.find_mut(group_key)?;
            group.waiting = None;
            // A group whose queue was deleted is about to be removed, too.
            if let Some(queue) = self.of_queues.find_mut(group.queue) {
                group.place(group_key, queue);
                return Some(group.queue);
            }
        }
    }

    /// Moves a group out of its queue's line: its channel has no room.
    fn await_room(&mut self, key: GroupKey) {
        if let Some(group) = self.groups.find_mut(key)
            && let Some(channel) = self.of_channels.find_mut(group.channel)
            && let Some(queue) = self.of_queues.find_mut(group.queue)
        {
            group.waiting = Some(channel.wait(key));
            group.place(key, queue);
        }
    }

    /// Moves a consumer out of its group's line: it is at its own limit.
    fn block(&mut self, key: ConsumerKey) {
        self.leave_line(key, Turn::Blocked);
    }

    /// The same for a reader that has no message to be sent.
    pub(crate) fn await_message(&mut self, next: Next) {
        self.leave_line(next.consumer, Turn::Waiting);
    }

    /// Returns such a reader to the line.
    pub(crate) fn has_message(&mut self, key: ConsumerKey) {
        let consumer = self.consumers.find(key);
        if consumer.is_some_and(|consumer| consumer.turn == Turn::Waiting) {
            self.line_up(key);
        }
    }

    fn leave_line(&mut self, key: ConsumerKey, turn: Turn) {
        if let Some(consumer) = self.consumers.find_mut(key)
            && let Some(group) = self.groups.find_mut(consumer.group)
            && let Some(queue) = self.of_queues.find_mut(consumer.queue)
        {
            consumer.turn = turn;
            group.line.remove(consumer.rank);
            group.place(consumer.group, queue);
        }
    }

    /// Ends a consumer's turn: it moves behind its equals, unless it is alone.
    fn pass_turn(&mut self, key: ConsumerKey) {
        if let Some(consumer) = self.consumers.find_mut(key)
            && let Some(queue) = self.of_queues.find_mut(consumer.queue)
            && let Some(group) = self.groups.find_mut(consumer.group)
        {
            group.line.remove(consumer.rank);
            group.line_up(key, consumer, queue);
        }
    }

    /// Returns a consumer that may have room to the line, behind its equals.
    pub(super) fn line_up(&mut self, key: ConsumerKey) {
        if let Some(consumer) = self.consumers.find_mut(key)
            && let Some(queue) = self.of_queues.find_mut(consumer.queue)
            && let Some(group) = self.groups.find_mut(consumer.group)
        {
            consumer.turn = Turn::InLine;
            group.line_up(key, consumer, queue);
        }
    }
}
