//! The memory charged to connections beside their messages, so that a shared memory account knows each owner.

use super::{Channel, Channels};
use crate::consumers::Consumer;
use crate::{ChannelKey, ConnectionKey, Outbox};

/// A channel, with its places in maps and in the other rooms.
pub(crate) const CHANNEL_BYTES: isize = size_of::<Channel>() as isize + 256;

/// A consumer without its tag: with its places in maps and lines, and its counts.
const CONSUMER_BYTES: isize = size_of::<Consumer>() as isize + 256;

pub(crate) fn consumer_bytes(tag: &str) -> isize {
    CONSUMER_BYTES + tag.len() as isize
}

impl<H> Channels<H> {
    /// Charges a channel for another consumer.
    pub(crate) fn add_consumer(&mut self, key: ChannelKey, tag: &str) {
        if let Some(connection) = self.channels.find(key).map(|c| c.connection) {
            if let Some(connection) = self.connections.find_mut(connection) {
                connection.consumers += 1;
            }
            self.charge(connection, consumer_bytes(tag));
        }
    }

    /// Releases the charge of a consumer, if the channel still exists.
    pub(crate) fn remove_consumer(&mut self, key: ChannelKey, tag: &str) {
        if let Some(connection) = self.channels.find(key).map(|c| c.connection) {
            if let Some(connection) = self.connections.find_mut(connection) {
                connection.consumers -= 1;
            }
            self.charge(connection, -consumer_bytes(tag));
        }
    }

    /// Changes the charge of a connection. The outbox is told when the turn ends.
    pub(super) fn charge(&mut self, key: ConnectionKey, delta: isize) {
        if let Some(connection) = self.connections.find_mut(key)
            && !connection.is_closing
        {
            if connection.charge.untold == 0 {
                self.to_charge.push(key);
            }
            connection.charge.untold += delta;
        }
    }

    /// Updates the charge for a channel's unacknowledged deliveries.
    #[inline]
    pub(crate) fn check_charge(&mut self, key: ChannelKey) {
        if let Some(channel) = self.channels.find(key)
            && channel.unacked_bytes != channel.unacked.memory_bytes()
        {
            self.charge_unacked(key);
        }
    }

    #[cold]
    pub(super) fn charge_unacked(&mut self, key: ChannelKey) {
        if let Some(channel) = self.channels.find_mut(key) {
            let bytes = channel.unacked.memory_bytes();
            let before = std::mem::replace(&mut channel.unacked_bytes, bytes);
            let connection = channel.connection;
            self.charge(connection, bytes as isize - before as isize);
        }
    }

    /// Tells the outbox of the changed charges.
    #[inline]
    pub(crate) fn flush_charges(&mut self, out: &mut dyn Outbox<H>) {
        if !self.to_charge.is_empty() {
            self.tell_charges(out);
        }
    }

    fn tell_charges(&mut self, out: &mut dyn Outbox<H>) {
        while let Some(key) = self.to_charge.pop() {
            if let Some(connection) = self.connections.find_mut(key) {
                let untold = std::mem::take(&mut connection.charge.untold);
                connection.charge.told += untold;
                if untold != 0 {
                    out.hold(&connection.handle, untold);
                }
            }
        }
    }

    /// Releases all charges of a closing connection: it holds nothing any more that it could be asked for.
    pub(super) fn discharge(&mut self, key: ConnectionKey, out: &mut dyn Outbox<H>) {
        if let Some(connection) = self.connections.find_mut(key) {
            let told = std::mem::take(&mut connection.charge).told;
            if told != 0 {
                out.hold(&connection.handle, -told);
            }
        }
    }

    /// The charges of a connection, told or not.
    #[cfg(test)]
    pub(crate) fn charge_of(&self, key: ConnectionKey) -> isize {
        let connection = self.connections.find(key).expect("is there");
        connection.charge.told + connection.charge.untold
    }
}
