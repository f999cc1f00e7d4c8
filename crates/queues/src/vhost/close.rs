//! Closing of connections and channels, and removal of their remains.

use super::Vhost;
use crate::transactions::Verdict;
use crate::{ChannelKey, ConnectionKey, Outbox, Time};

impl<H> Vhost<H> {
    /// Closes a connection: deletes its exclusive queues, and requeues its unacknowledged messages. It is sent nothing
    /// any more, neither requeued messages nor notices of its own queues' ends.
    pub fn close_connection(
        &mut self,
        now: Time,
        connection: ConnectionKey,
        out: &mut dyn Outbox<H>,
    ) {
        self.begin();
        if self.shut_connection(connection, out) {
            self.go_on_closing(now, connection, out);
        }
        self.end(now, out);
    }

    /// Stops all output to a connection; returns whether it was open. All of its channels are shut before any is
    /// closed. So messages that one held are not sent to another, and all are back in their places before another
    /// consumer gets any.
    pub(super) fn shut_connection(&mut self, key: ConnectionKey, out: &mut dyn Outbox<H>) -> bool {
        let Some(channels) = self.channels.shut_connection(key, out) else {
            return false;
        };
        for channel in channels {
            self.shut(channel);
        }
        true
    }

    /// Removes the remains of a connection, as far as this input's steps allow.
    pub(super) fn go_on_closing(&mut self, now: Time, key: ConnectionKey, out: &mut dyn Outbox<H>) {
        while let Some(closing) = self.channels.connection(key) {
            if let Some(channel) = closing.channels.last().copied() {
                if !self.close_some(now, channel, out) {
                    return self.channels.close_connection_later(key);
                }
            } else if let Some(queue) = self.channels.take_owned(key) {
                self.remove_queue(queue, out);
            } else {
                self.channels.remove_connection(key);
                self.transactions.end_connection(key);
                return;
            }
            if self.ledger.steps.is_over() {
                return self.channels.close_connection_later(key);
            }
        }
    }

    /// Closes a channel: removes its consumers, and requeues its unacknowledged messages at their places. Its waiting
    /// confirms are dropped. A channel that the vhost has closed by itself ([`Outbox::close_channel`]) needs no further
    /// closing.
    pub fn close_channel(&mut self, now: Time, channel: ChannelKey, out: &mut dyn Outbox<H>) {
        self.begin();
        self.end_channel(now, channel, out);
        self.end(now, out);
    }

    /// The same, within another input.
    pub(super) fn end_channel(&mut self, now: Time, key: ChannelKey, out: &mut dyn Outbox<H>) {
        self.flush_channel(key, out);
        if self.channels.find_open(key).is_none() {
            return;
        }
        self.shut(key);
        self.go_on_settling(now, key, out);
        self.go_on_closing_channel(now, key, out);
    }

    /// Stops all output to a channel, and begins the return of its messages.
    fn shut(&mut self, key: ChannelKey) {
        self.abandon_transaction(key);
        self.confirms.end_channel(key);
        let unacked = self.channels.shut(key);
        let verdict = Verdict::Left;
        let queues = &mut self.queues;
        self.settlements.push(key, unacked, verdict, queues);
        // Another channel of the connection may hold older messages of the same queue.
        for queue in self.consumers.queues_of_channel(key) {
            self.settlements.begin_return(key, queue, queues);
        }
    }

    pub(super) fn go_on_closing_channel(
        &mut self,
        now: Time,
        key: ChannelKey,
        out: &mut dyn Outbox<H>,
    ) {
        if !self.close_some(now, key, out) {
            self.channels.close_later(key);
        }
    }

    /// Removes the remains of a channel, as far as this input's steps allow; returns whether none are left.
    fn close_some(&mut self, now: Time, key: ChannelKey, out: &mut dyn Outbox<H>) -> bool {
        self.go_on_settling(now, key, out);
        let mut queues = Vec::new();
        let mut is_over = self.ledger.steps.is_over();
        while !is_over && let Some(mut left) = self.consumers.cancel_first(key) {
            self.ledger.steps.spend(2);
            queues.push(left.consumer.queue);
            self.note_left(now, &mut left);
            is_over = self.ledger.steps.is_over();
        }
        queues.sort_unstable();
        queues.dedup();
        for queue in queues {
            self.remove_if_unused(queue, out);
            self.deliver(now, queue, out);
        }
        if self.consumers.count_of_channel(key) > 0 {
            return false;
        }
        if let Some(closed) = self.channels.remove(key) {
            let counts = &mut self.ledger.counts;
            counts.channels_closed += 1;
            counts.publishers -= usize::from(closed.published.get() > 0);
        }
        self.consumers.end_channel(key);
        self.transactions.end_channel(key);
        true
    }
}
