//! Connections and their channels: output, limits, and unacknowledged deliveries.
//!
//! ```text
//! open_connection ─▶ open ─▶ deliver, give (a message) ─▶ hold ─▶ take, take_up_to, split_up_to ─▶ settle
//!                     │                                    │
//!                     └─▶ shut ─▶ remove                   └─▶ (a timer) is_too_old
//! ```
//!
//! It borrows the outbox, and the time to set timers. *Never:* a queue, a consumer, a confirm.

mod backlog;
mod channel;
mod charges;
mod connection;
mod hold;
mod outgoing;
mod unacked;

pub use self::connection::Client;

pub(crate) use self::channel::{Channel, ChannelTimer, ReplyConsumer};
#[cfg(test)]
pub(crate) use self::charges::{CHANNEL_BYTES, consumer_bytes};
pub(crate) use self::connection::Connection;
pub(crate) use self::outgoing::Outgoing;
pub(crate) use self::unacked::{Delivery, Unacked};

use std::collections::VecDeque;
use std::sync::Arc;

use crosstie_amqp::method::{BasicDeliver, ChannelOpen};
use crosstie_amqp::{Method, ReplyCode};
use crosstie_auth::Permissions;
use crosstie_collections::Slab;

#[cfg(not(test))]
use self::charges::CHANNEL_BYTES;
use crate::keys::{OfChannel, OfConnection};
use crate::timers::Timers;
use crate::{ChannelKey, ConnectionKey, Fault, Outbox, QueueKey, Refused, Time, VhostConfig};

#[derive(Debug)]
pub(crate) struct Channels<H> {
    connections: Slab<OfConnection, Connection<H>>,
    channels: Slab<OfChannel, Channel>,
    timers: Timers<ChannelTimer>,
    /// Maximum number of channels per connection.
    channels_max: usize,
    /// Maximum time that a delivery may stay unacknowledged, unless its queue has another.
    consumer_timeout_ms: Option<u64>,
    /// The time after which a channel's oldest delivery is looked at: the shortest of these.
    look_after_ms: Option<u64>,
    /// Whether it has become shorter, so that timers have to be set anew.
    is_shortened: bool,
    /// Connections whose charge has changed.
    to_charge: Vec<ConnectionKey>,
    /// Closed channels whose remains are more than one input removes.
    closing_channels: VecDeque<ChannelKey>,
    closing_connections: VecDeque<ConnectionKey>,
    /// Connections that take messages again, with more groups of consumers than one input lines up.
    resuming: VecDeque<ConnectionKey>,
}

/// Opening and closing of connections and channels.
impl<H> Channels<H> {
    pub(crate) fn new(config: &VhostConfig) -> Self {
        Self {
            connections: Slab::new(),
            channels: Slab::new(),
            timers: Timers::new(),
            channels_max: config.limits.channels_max,
            consumer_timeout_ms: config.consumer_timeout_ms,
            look_after_ms: config.consumer_timeout_ms,
            is_shortened: false,
            to_charge: Vec::new(),
            closing_channels: VecDeque::new(),
            closing_connections: VecDeque::new(),
            resuming: VecDeque::new(),
        }
    }

    pub(crate) fn open_connection(&mut self, handle: H, client: Client) -> ConnectionKey {
        self.connections.insert(Connection::new(handle, client))
    }

    pub(crate) fn set_permissions(
        &mut self,
        key: ConnectionKey,
        permissions: Arc<Permissions>,
        is_impersonator: Option<bool>,
    ) {
        if let Some(connection) = self.connections.find_mut(key) {
            connection.client.permissions = permissions;
            let client = &mut connection.client;
            client.is_impersonator = is_impersonator.unwrap_or(client.is_impersonator);
        }
    }

    pub(crate) fn open(&mut self, key: ConnectionKey, number: u16) -> Result<ChannelKey, Fault> {
        let fault = |code, text: &str| Err(Fault::of::<ChannelOpen<'_>>(code, text));
        let opening = self.connections.find_mut(key).filter(|c| !c.is_closing);
        let Some(opening) = opening else {
            return fault(ReplyCode::ChannelError, "the connection is closed");
        };
        if opening.channels.len() >= self.channels_max {
            let text = format!(
                "number of channels opened ({}) has reached the negotiated channel_max ({})",
                opening.channels.len(),
                self.channels_max
            );
            return fault(ReplyCode::NotAllowed, &text);
        }
        let channel = self.channels.insert(Channel::new(key, number));
        opening.channels.push(channel);
        self.charge(key, CHANNEL_BYTES);
        Ok(channel)
    }

    /// Stops all output to a connection, including notices of its own queues' ends. Returns its channels, for the
    /// caller to shut; none, if that was done before.
    pub(crate) fn shut_connection(
        &mut self,
        key: ConnectionKey,
        out: &mut dyn Outbox<H>,
    ) -> Option<Vec<ChannelKey>> {
        let closing = self.connections.find_mut(key).filter(|c| !c.is_closing)?;
        closing.is_closing = true;
        closing.is_full = true;
        closing.client.consumer_cancel_notify = false;
        let channels = closing.channels.clone();
        self.discharge(key, out);
        Some(channels)
    }

    /// Stops all output to a channel. Returns its unacknowledged deliveries.
    pub(crate) fn shut(&mut self, key: ChannelKey) -> Unacked {
        let Some(channel) = self.channels.find_mut(key) else {
            return Unacked::default();
        };
        channel.shut();
        let connection = channel.connection;
        let unacked = std::mem::take(&mut channel.unacked);
        let bytes = std::mem::take(&mut channel.unacked_bytes) as isize;
        self.charge(connection, -bytes - CHANNEL_BYTES);
        unacked
    }

    /// Returns the channel, if it was not removed before.
    pub(crate) fn remove(&mut self, key: ChannelKey) -> Option<Channel> {
        let channel = self.channels.remove(key)?;
        if let Some(connection) = self.connections.find_mut(channel.connection) {
            connection.channels.retain(|other| *other != key);
        }
        Some(channel)
    }

    pub(crate) fn remove_connection(&mut self, key: ConnectionKey) {
        self.connections.remove(key);
    }

    /// Makes a connection the owner of an exclusive queue.
    pub(crate) fn own(&mut self, key: ConnectionKey, queue: QueueKey) {
        if let Some(connection) = self.connections.find_mut(key) {
            connection.queues.insert(queue);
        }
    }

    /// Takes one of the connection's exclusive queues, which has to be deleted with it.
    pub(crate) fn take_owned(&mut self, key: ConnectionKey) -> Option<QueueKey> {
        self.connections.find_mut(key)?.queues.pop_first()
    }

    pub(crate) fn disown(&mut self, key: ConnectionKey, queue: QueueKey) {
        if let Some(connection) = self.connections.find_mut(key) {
            connection.queues.remove(&queue);
        }
    }
}

/// The output: methods and deliveries.
impl<H> Channels<H> {
    /// Sends a method without content.
    pub(crate) fn send<'m>(
        &self,
        key: ChannelKey,
        method: impl Into<Method<'m>>,
        out: &mut dyn Outbox<H>,
    ) {
        if let Some((handle, number)) = self.address(key) {
            out.send(handle, number, &method.into());
        }
    }

    /// Sends a message that was requested or is returned: a connection that refuses it is closed.
    pub(crate) fn send_owed<'m>(
        &self,
        key: ChannelKey,
        method: impl Into<Method<'m>>,
        outgoing: &Outgoing<'_>,
        out: &mut dyn Outbox<H>,
    ) -> Result<(), Refused> {
        let (handle, number) = self.address(key).ok_or(Refused::Gone)?;
        let method = method.into();
        out.send_owed(handle, number, &method, outgoing.properties, outgoing.body)
    }

    /// Delivers a message to a consumer of a channel; returns its delivery tag. A connection that refuses it is sent
    /// nothing until it resumes.
    #[inline]
    pub(crate) fn deliver(
        &mut self,
        key: ChannelKey,
        consumer_tag: &str,
        needs_ack: bool,
        outgoing: &Outgoing<'_>,
        out: &mut dyn Outbox<H>,
    ) -> Result<u64, Refused> {
        let channel = self.channels.find_mut(key).ok_or(Refused::Gone)?;
        let connection = self.connections.find_mut(channel.connection);
        let connection = connection.ok_or(Refused::Gone)?;
        let method = BasicDeliver {
            consumer_tag,
            delivery_tag: channel.last_tag + 1,
            redelivered: outgoing.is_redelivered,
            exchange: outgoing.exchange,
            routing_key: outgoing.routing_key,
        };
        let sent = out.send_content(
            &connection.handle,
            channel.number,
            &method.into(),
            outgoing.properties,
            outgoing.body,
        );
        if let Err(refused) = sent {
            connection.is_full = true;
            return Err(refused);
        }
        channel.prefetched += usize::from(needs_ack);
        Ok(channel.next_tag())
    }

    /// The delivery tag for a message that answers `basic.get`.
    pub(crate) fn take_tag(&mut self, key: ChannelKey) -> Option<u64> {
        self.channels.find_mut(key).map(Channel::next_tag)
    }

    /// Tells the client that the vhost closed a channel.
    pub(crate) fn tell_closed(&self, key: ChannelKey, fault: &Fault, out: &mut dyn Outbox<H>) {
        if let Some((handle, number)) = self.address(key) {
            out.close_channel(handle, number, fault);
        }
    }
}

/// The memory of a channel, and its timers.
impl<H> Channels<H> {
    pub(crate) fn set_last_queue(&mut self, key: ChannelKey, name: Arc<str>) {
        if let Some(channel) = self.channels.find_mut(key) {
            channel.last_queue = Some(name);
        }
    }

    pub(crate) fn set_reply_consumer(&mut self, key: ChannelKey, consumer: ReplyConsumer) {
        if let Some(channel) = self.channels.find_mut(key) {
            channel.reply_consumer = Some(consumer);
        }
    }

    pub(crate) fn cancel_reply_consumer(&mut self, key: ChannelKey, tag: &str) {
        if let Some(channel) = self.channels.find_mut(key) {
            channel.reply_consumer.take_if(|reply| *reply.tag == *tag);
        }
    }

    /// Sets a timer to check the channel for more room.
    pub(crate) fn look_for_room(&mut self, at: Time, key: ChannelKey) {
        if let Some(channel) = self.channels.find_mut(key)
            && !std::mem::replace(&mut channel.has_room_timer, true)
        {
            self.set_timer(at, ChannelTimer::Room(key));
        }
    }

    /// Notes that this timer has fired.
    pub(crate) fn room_was_looked_for(&mut self, key: ChannelKey) {
        if let Some(channel) = self.channels.find_mut(key) {
            channel.has_room_timer = false;
        }
    }

    pub(crate) fn next_timeout(&self) -> Option<Time> {
        self.timers.next()
    }

    /// Takes a timer that is due. If another one has replaced it, the inner value is `None`.
    pub(crate) fn take_due(&mut self, now: Time) -> Option<Option<ChannelTimer>> {
        let (at, timer) = self.timers.take_due(now)?;
        if let ChannelTimer::Unacked(key) = timer {
            let waiting = self
                .channels
                .find_mut(key)
                .map(|channel| &mut channel.timer);
            let is_live = waiting.and_then(|due| due.take_if(|due| *due == at));
            return Some(is_live.map(|_| timer));
        }
        Some(Some(timer))
    }

    fn set_timer(&mut self, at: Time, timer: ChannelTimer) {
        let channels = &self.channels;
        self.timers.set(at, timer, |at, timer| match timer {
            ChannelTimer::Unacked(key) => channels.find(key).is_some_and(|c| c.timer == Some(at)),
            ChannelTimer::Room(key) => channels.find(key).is_some(),
        });
    }
}

/// Read access for the other rooms.
impl<H> Channels<H> {
    #[inline]
    pub(crate) fn find(&self, key: ChannelKey) -> Option<&Channel> {
        self.channels.find(key)
    }

    /// A channel that is not closing.
    #[inline]
    pub(crate) fn find_open(&self, key: ChannelKey) -> Option<&Channel> {
        self.channels.find(key).filter(|c| !c.is_closing)
    }

    #[inline]
    pub(crate) fn connection(&self, key: ConnectionKey) -> Option<&Connection<H>> {
        self.connections.find(key)
    }

    /// A channel with its connection.
    #[inline]
    pub(crate) fn both(&self, key: ChannelKey) -> Option<(&Channel, &Connection<H>)> {
        let channel = self.channels.find(key)?;
        Some((channel, self.connections.find(channel.connection)?))
    }

    /// Whether a channel's consumers may be sent anything.
    #[inline]
    pub(crate) fn has_room(&self, key: ChannelKey) -> Option<bool> {
        let (channel, connection) = self.both(key)?;
        Some(!connection.is_full && !channel.is_at_limit())
    }

    /// The outbox's name for a channel.
    #[inline]
    fn address(&self, key: ChannelKey) -> Option<(&H, u16)> {
        let (channel, connection) = self.both(key)?;
        Some((&connection.handle, channel.number))
    }

    pub(crate) fn len(&self) -> usize {
        self.channels.len()
    }

    pub(crate) fn connection_count(&self) -> usize {
        self.connections.len()
    }

    pub(crate) fn connection_keys(&self) -> Vec<ConnectionKey> {
        self.connections.iter().map(|(key, _)| key).collect()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (ChannelKey, &Channel)> {
        self.channels.iter()
    }

    #[cfg(test)]
    pub(crate) fn connections(&self) -> impl Iterator<Item = (ConnectionKey, &Connection<H>)> {
        self.connections.iter()
    }
}
