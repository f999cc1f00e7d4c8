//! Connections and channels come and go.

use std::sync::Arc;

use crosstie_amqp::ReplyCode;
use crosstie_amqp::method::ChannelOpen;
use crosstie_auth::Permissions;

use super::Vhost;
use crate::channel::{Channel, Connection};
use crate::unacked::Unacked;
use crate::{ChannelKey, Client, ConnectionKey, Fault, Outbox, Time};

impl<H> Vhost<H> {
    pub fn open_connection(&mut self, handle: H, client: Client) -> ConnectionKey {
        self.connections.insert(Connection {
            handle,
            client,
            is_full: false,
            channels: Vec::new(),
            queues: Vec::new(),
            uncommitted_bytes: 0,
        })
    }

    /// Its user may do other things from now on.
    pub fn set_permissions(&mut self, connection: ConnectionKey, permissions: Arc<Permissions>) {
        if let Some(connection) = self.connections.find_mut(connection) {
            connection.client.permissions = permissions;
        }
    }

    /// Its exclusive queues go; what it has not acknowledged is ready again.
    pub fn close_connection(
        &mut self,
        now: Time,
        connection: ConnectionKey,
        out: &mut dyn Outbox<H>,
    ) {
        let Some(closing) = self.connections.find_mut(connection) else {
            return;
        };
        // Nothing is sent to it any more: not what is requeued, nor that a queue of its own goes.
        closing.is_full = true;
        closing.client.consumer_cancel_notify = false;
        let channels = std::mem::take(&mut closing.channels);
        let queues = std::mem::take(&mut closing.queues);
        self.close_channels(now, &channels, out);
        for queue in queues {
            self.remove_queue(queue, out);
        }
        self.connections.remove(connection);
        self.bury(now, out);
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
        Ok(key)
    }

    /// Its consumers go; what it has not acknowledged is ready again, at its place. Confirms that
    /// it waits for are told to nobody. Of a channel that the vhost has closed by itself
    /// ([`Outbox::close_channel`]) nothing is left to be closed.
    pub fn close_channel(&mut self, now: Time, channel: ChannelKey, out: &mut dyn Outbox<H>) {
        self.close_channels(now, &[channel], out);
        self.bury(now, out);
    }

    /// Several at once: all that they held is back in its order before anybody else is given any.
    fn close_channels(&mut self, now: Time, channels: &[ChannelKey], out: &mut dyn Outbox<H>) {
        let mut queues = Vec::new();
        for channel in channels {
            self.abandon_transaction(*channel);
            self.flush_channel(*channel, out);
            let Some(closing) = self.channels.find_mut(*channel) else {
                continue;
            };
            let consumers = std::mem::take(&mut closing.consumers);
            for consumer in consumers.into_values() {
                queues.extend(self.remove_consumer(now, consumer));
            }
        }
        self.requeue_everything(now, channels, out);
        queues.sort_unstable();
        queues.dedup();
        for queue in queues {
            self.remove_if_unused(queue, out);
            self.deliver(now, queue, out);
        }
        for channel in channels {
            if let Some(closed) = self.channels.remove(*channel)
                && let Some(connection) = self.connections.find_mut(closed.connection)
            {
                connection.channels.retain(|key| key != channel);
            }
        }
    }
}
