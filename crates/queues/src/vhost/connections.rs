//! Connections and channels come and go.

use std::collections::BTreeSet;
use std::sync::Arc;

use crosstie_amqp::ReplyCode;
use crosstie_amqp::method::ChannelOpen;
use crosstie_auth::Permissions;

use super::Vhost;
use super::charges::CHANNEL_BYTES;
use crate::channel::{Channel, Charge, Connection};
use crate::transaction::Verdict;
use crate::unacked::Unacked;
use crate::{ChannelKey, Client, ConnectionKey, Fault, Outbox, Time};

impl<H> Vhost<H> {
    pub fn open_connection(&mut self, handle: H, client: Client) -> ConnectionKey {
        self.connections.insert(Connection {
            handle,
            client,
            is_full: false,
            is_closing: false,
            is_resuming: false,
            channels: Vec::new(),
            consumers: 0,
            queues: BTreeSet::new(),
            charge: Charge::default(),
            uncommitted_bytes: 0,
        })
    }

    /// Its user may do other things from now on.
    pub fn set_permissions(&mut self, connection: ConnectionKey, permissions: Arc<Permissions>) {
        if let Some(connection) = self.connections.find_mut(connection) {
            connection.client.permissions = permissions;
        }
    }

    /// Its exclusive queues go; what it has not acknowledged is ready again. Nothing is sent to it any
    /// more: not what is requeued, nor that a queue of its own goes.
    pub fn close_connection(
        &mut self,
        now: Time,
        connection: ConnectionKey,
        out: &mut dyn Outbox<H>,
    ) {
        self.begin();
        let Some(closing) = self.connections.find_mut(connection) else {
            return;
        };
        if std::mem::replace(&mut closing.is_closing, true) {
            return;
        }
        closing.is_full = true;
        closing.client.consumer_cancel_notify = false;
        let channels = closing.channels.clone();
        self.discharge(connection, out);
        // First all of them: what one held goes to no other, and all is back in its place before
        // anybody else is given any.
        for channel in channels {
            self.shut(channel);
        }
        self.go_on_closing(now, connection, out);
        self.end(now, out);
    }

    /// Works off what a connection has left, as far as this input's steps reach.
    pub(super) fn go_on_closing(&mut self, now: Time, key: ConnectionKey, out: &mut dyn Outbox<H>) {
        while let Some(closing) = self.connections.find_mut(key) {
            if let Some(channel) = closing.channels.last().copied() {
                if !self.close_some(now, channel, out) {
                    return self.backlog.closing_connections.push_back(key);
                }
            } else if let Some(queue) = closing.queues.pop_first() {
                self.remove_queue(queue, out);
            } else {
                self.connections.remove(key);
                return;
            }
            if self.steps.is_over() {
                return self.backlog.closing_connections.push_back(key);
            }
        }
    }

    /// Number 0 is the connection itself, and is no channel's.
    pub fn open_channel(
        &mut self,
        connection: ConnectionKey,
        number: u16,
    ) -> Result<ChannelKey, Fault> {
        let fault = |code, text: &str| Err(Fault::of::<ChannelOpen<'_>>(code, text));
        let Some(opening) = self.connections.find_mut(connection) else {
            return fault(ReplyCode::ChannelError, "the connection is closed");
        };
        if opening.is_closing {
            return fault(ReplyCode::ChannelError, "the connection is closed");
        }
        if opening.channels.len() >= self.config.limits.channels_max {
            let text = format!(
                "number of channels opened ({}) has reached the negotiated channel_max ({})",
                opening.channels.len(),
                self.config.limits.channels_max
            );
            return fault(ReplyCode::NotAllowed, &text);
        }
        let key = self.channels.insert(Channel {
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
            consumers: Default::default(),
            groups: Default::default(),
            waiting: Default::default(),
            last_waiting: 0,
            last_queue: None,
            confirms: None,
            transaction: None,
            reply_consumer: None,
            has_timer: false,
            has_room_timer: false,
        });
        opening.channels.push(key);
        self.charge(connection, CHANNEL_BYTES);
        Ok(key)
    }

    /// Its consumers go; what it has not acknowledged is ready again, at its place. Confirms that
    /// it waits for are told to nobody. Of a channel that the vhost has closed by itself
    /// ([`Outbox::close_channel`]) nothing is left to be closed.
    pub fn close_channel(&mut self, now: Time, channel: ChannelKey, out: &mut dyn Outbox<H>) {
        self.begin();
        self.end_channel(now, channel, out);
        self.end(now, out);
    }

    /// The same, within another input.
    pub(super) fn end_channel(&mut self, now: Time, key: ChannelKey, out: &mut dyn Outbox<H>) {
        self.flush_channel(key, out);
        if self.channels.find(key).is_none_or(|c| c.is_closing) {
            return;
        }
        self.shut(key);
        self.go_on_settling(now, key, out);
        self.go_on_closing_channel(now, key, out);
    }

    /// Nothing is sent to a channel any more, and what it holds is on its way back.
    fn shut(&mut self, key: ChannelKey) {
        self.abandon_transaction(key);
        let Some(channel) = self.channels.find_mut(key) else {
            return;
        };
        channel.shut();
        let connection = channel.connection;
        let unacked = std::mem::take(&mut channel.unacked);
        let bytes = std::mem::take(&mut channel.unacked_bytes) as isize;
        self.charge(connection, -bytes - CHANNEL_BYTES);
        self.settle_later(key, unacked, Verdict::GivenBack);
    }

    pub(super) fn go_on_closing_channel(
        &mut self,
        now: Time,
        key: ChannelKey,
        out: &mut dyn Outbox<H>,
    ) {
        if !self.close_some(now, key, out) {
            self.backlog.closing_channels.push_back(key);
        }
    }

    /// Removes what a channel has left, as far as this input's steps reach; whether nothing is left.
    fn close_some(&mut self, now: Time, key: ChannelKey, out: &mut dyn Outbox<H>) -> bool {
        self.go_on_settling(now, key, out);
        let mut queues = Vec::new();
        let mut is_over = self.steps.is_over();
        while !is_over
            && let Some(channel) = self.channels.find_mut(key)
            && let Some((_, consumer)) = channel.consumers.pop_first()
        {
            self.steps.spend(2);
            queues.extend(self.remove_consumer(now, consumer));
            is_over = self.steps.is_over();
        }
        queues.sort_unstable();
        queues.dedup();
        for queue in queues {
            self.remove_if_unused(queue, out);
            self.deliver(now, queue, out);
        }
        let Some(channel) = self.channels.find(key) else {
            return true;
        };
        if !channel.consumers.is_empty() {
            return false;
        }
        let connection = channel.connection;
        self.channels.remove(key);
        if let Some(connection) = self.connections.find_mut(connection) {
            connection.channels.retain(|other| *other != key);
        }
        true
    }

    /// The last step of each input: what has died in it goes where dead letters go.
    #[inline(always)]
    pub(super) fn end(&mut self, now: Time, out: &mut dyn Outbox<H>) {
        if self.died > 0 {
            self.died = 0;
            self.bury(now, out);
        }
    }
}
