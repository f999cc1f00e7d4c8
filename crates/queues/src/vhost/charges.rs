//! What connections are charged with beside their messages: an account that is not theirs alone knows
//! then whose memory it is.

use super::Vhost;
use crate::channel::{Channel, Charge, Consumer};
use crate::{ChannelKey, ConnectionKey, Outbox};

/// A channel, with what finds it.
pub(super) const CHANNEL_BYTES: isize = size_of::<Channel>() as isize + 64;

/// A consumer without its tag: with its places in maps and lines, and the counts of what is shared.
pub(super) const CONSUMER_BYTES: isize = size_of::<Consumer>() as isize + 256;

impl<H> Vhost<H> {
    /// So many bytes more, or fewer. The outbox hears of it when the turn ends.
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

    /// That what a channel was sent and has not acknowledged is charged as it is now.
    #[inline]
    pub(super) fn check_charge(&mut self, key: ChannelKey) {
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

    pub(super) fn tell_charges(&mut self, out: &mut dyn Outbox<H>) {
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

    /// It is closing: it holds nothing any more that it could be asked for.
    pub(super) fn discharge(&mut self, key: ConnectionKey, out: &mut dyn Outbox<H>) {
        if let Some(connection) = self.connections.find_mut(key) {
            let Charge { told, .. } = std::mem::take(&mut connection.charge);
            if told != 0 {
                out.hold(&connection.handle, -told);
            }
        }
    }
}
