//! Whose turn it is: by priority, in turn among equals, as long as there is room for more.

use super::Vhost;
use crate::channel::{Consumer, Turn};
use crate::keys::{ConsumerKey, GroupKey};
use crate::{ChannelKey, ConnectionKey, Outbox, QueueKey, Time};

/// Whose turn it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Next {
    pub(super) consumer: ConsumerKey,
    /// There is nobody that it could pass its turn to.
    pub(super) is_alone: bool,
}

/// How the first in a queue's line is found.
enum First {
    Ready(Next),
    /// Its channel or its connection takes nothing.
    NoRoom(GroupKey),
    /// It has to acknowledge something first.
    AtLimit(ConsumerKey),
}

impl<H> Vhost<H> {
    /// Whose turn it is. It stays in its place until [`Self::pass_turn`].
    pub(super) fn next_consumer(&mut self, key: QueueKey) -> Option<Next> {
        match self.first_in_line(key)? {
            First::Ready(next) => Some(next),
            first => self.next_behind(key, first),
        }
    }

    /// The same, when the first leaves the line for another. Apart, since a loop around the usual
    /// case costs it registers: 4 to 16 instructions a message, by how it was written.
    #[inline(never)]
    fn next_behind(&mut self, key: QueueKey, mut first: First) -> Option<Next> {
        loop {
            self.steps.spend(1);
            match first {
                First::Ready(next) => return Some(next),
                First::NoRoom(group) => self.await_room(group),
                First::AtLimit(consumer) => self.block(consumer),
            }
            first = self.first_in_line(key)?;
        }
    }

    #[inline(always)]
    fn first_in_line(&self, key: QueueKey) -> Option<First> {
        let queue = self.queues.find(key)?;
        let group_key = queue.line.first_key()?;
        let group = self.groups.find(group_key)?;
        let channel = self.channels.find(group.channel)?;
        let connection = self.connections.find(channel.connection)?;
        if connection.is_full || channel.is_at_limit() {
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

    /// A group leaves its queue's line: its channel has no room.
    fn await_room(&mut self, key: GroupKey) {
        if let Some(group) = self.groups.find_mut(key)
            && let Some(channel) = self.channels.find_mut(group.channel)
            && let Some(queue) = self.queues.find_mut(group.queue)
        {
            group.waiting = Some(channel.wait(key));
            group.place(key, queue);
        }
    }

    /// A consumer leaves its group's line: it is at its own limit.
    fn block(&mut self, key: ConsumerKey) {
        if let Some(consumer) = self.consumers.find_mut(key)
            && let Some(group) = self.groups.find_mut(consumer.group)
            && let Some(queue) = self.queues.find_mut(consumer.queue)
        {
            consumer.turn = Turn::Blocked;
            group.line.remove(consumer.rank);
            group.place(consumer.group, queue);
        }
    }

    /// It has had its turn, and goes behind its equals. Who is alone is not asked to.
    pub(super) fn pass_turn(&mut self, key: ConsumerKey) {
        let Some(consumer) = self.consumers.find_mut(key) else {
            return;
        };
        let Some(queue) = self.queues.find_mut(consumer.queue) else {
            return;
        };
        let Some(group) = self.groups.find_mut(consumer.group) else {
            return;
        };
        group.line.remove(consumer.rank);
        consumer.rank = queue.rank_behind(consumer.seat.priority);
        group.line.insert(consumer.rank, key);
        group.place(consumer.group, queue);
    }

    /// Nothing is known against a consumer any more: it comes behind its equals.
    pub(super) fn line_up(&mut self, key: ConsumerKey) {
        let Some(consumer) = self.consumers.find_mut(key) else {
            return;
        };
        let Some(queue) = self.queues.find_mut(consumer.queue) else {
            return;
        };
        let Some(group) = self.groups.find_mut(consumer.group) else {
            return;
        };
        consumer.turn = Turn::InLine;
        consumer.rank = queue.rank_behind(consumer.seat.priority);
        group.line.insert(consumer.rank, key);
        group.place(consumer.group, queue);
    }

    /// A consumer is gone, and its group with the last of them.
    pub(super) fn leave_group(&mut self, consumer: &Consumer) {
        let Some(group) = self.groups.find_mut(consumer.group) else {
            return;
        };
        group.consumers -= 1;
        if consumer.turn == Turn::InLine {
            group.line.remove(consumer.rank);
            if let Some(queue) = self.queues.find_mut(consumer.queue) {
                group.place(consumer.group, queue);
            }
        }
        if group.consumers > 0 {
            return;
        }
        let waiting = group.waiting;
        if let Some(channel) = self.channels.find_mut(consumer.channel) {
            channel.groups.remove(&consumer.queue);
            if let Some(number) = waiting {
                channel.waiting.remove(&number);
            }
        }
        self.groups.remove(consumer.group);
    }

    /// After deliveries of a channel were settled: whoever has room again is given what is ready.
    /// First those that wait for their channel, each in its turn; so that who waits for its own
    /// acknowledgement alone does not go before them. Mostly nobody waits: this is inlined up to
    /// where that is known.
    #[inline(always)]
    pub(super) fn serve(&mut self, now: Time, channel: ChannelKey, out: &mut dyn Outbox<H>) {
        self.serve_waiting(now, channel, out);
        self.check_charge(channel);
        if !self.unblocked.is_empty() {
            self.serve_unblocked(now, out);
        }
    }

    fn serve_unblocked(&mut self, now: Time, out: &mut dyn Outbox<H>) {
        let mut queues = std::mem::take(&mut self.unblocked);
        queues.sort_unstable();
        queues.dedup();
        for queue in queues.drain(..) {
            self.deliver(now, queue, out);
        }
        self.unblocked = queues;
    }

    /// Groups that wait for their channel's room are served in turn, until there is none.
    #[inline(always)]
    pub(super) fn serve_waiting(
        &mut self,
        now: Time,
        channel: ChannelKey,
        out: &mut dyn Outbox<H>,
    ) {
        while let Some(queue) = self.stop_waiting(channel) {
            self.deliver(now, queue, out);
        }
    }

    /// The connection takes messages again, after it had refused one as [`crate::Refused::Full`].
    pub fn resume(&mut self, now: Time, connection: ConnectionKey, out: &mut dyn Outbox<H>) {
        self.begin();
        let Some(resuming) = self.connections.find_mut(connection) else {
            return;
        };
        if resuming.is_closing {
            return;
        }
        resuming.is_full = false;
        if !resuming.is_resuming {
            self.go_on_resuming(now, connection, out);
        }
        self.end(now, out);
    }

    /// Its groups stand in line again, as many as this input's steps reach.
    pub(super) fn go_on_resuming(
        &mut self,
        now: Time,
        key: ConnectionKey,
        out: &mut dyn Outbox<H>,
    ) {
        let Some(resuming) = self.connections.find_mut(key) else {
            return;
        };
        resuming.is_resuming = false;
        // All of them before any is given something: the most urgent goes first.
        let mut queues = Vec::new();
        let mut is_over = false;
        for channel in resuming.channels.clone() {
            while !is_over && let Some(queue) = self.stop_waiting(channel) {
                self.steps.spend(1);
                queues.push(queue);
                is_over = self.steps.is_over();
            }
        }
        queues.sort_unstable();
        queues.dedup();
        for queue in queues {
            self.deliver(now, queue, out);
        }
        if is_over && let Some(resuming) = self.connections.find_mut(key) {
            resuming.is_resuming = true;
            self.backlog.resuming.push_back(key);
        }
    }

    /// The first group that waits in a channel with room stands in its queue's line again.
    #[inline(always)]
    fn stop_waiting(&mut self, key: ChannelKey) -> Option<QueueKey> {
        match self.channels.find(key)?.waiting.is_empty() {
            true => None,
            false => self.stop_first_waiting(key),
        }
    }

    fn stop_first_waiting(&mut self, key: ChannelKey) -> Option<QueueKey> {
        loop {
            let channel = self.channels.find_mut(key)?;
            if channel.is_at_limit() || self.connections.find(channel.connection)?.is_full {
                return None;
            }
            let (_, group_key): (u64, GroupKey) = channel.waiting.pop_first()?;
            let group = self.groups.find_mut(group_key)?;
            group.waiting = None;
            // One whose queue has gone is on its way, too.
            if let Some(queue) = self.queues.find_mut(group.queue) {
                group.place(group_key, queue);
                return Some(group.queue);
            }
        }
    }
}
