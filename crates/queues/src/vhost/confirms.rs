//! Publisher confirms: given at once where nothing has to be kept, or when a store has it.

use crosstie_amqp::method::{BasicAck, BasicNack};

use super::Vhost;
use crate::shrink::shrink;
use crate::{ChannelKey, Outbox, Position};

/// A publication that is confirmed when a store has everything up to there.
#[derive(Debug)]
pub(super) struct Waiting {
    position: Position,
    channel: ChannelKey,
    tag: u64,
}

impl<H> Vhost<H> {
    /// Sends the confirms that need not wait, several as one. Once per input of a connection,
    /// after its methods; a method on the channel sends its own before it is handled.
    pub fn flush_confirms(&mut self, out: &mut dyn Outbox<H>) {
        while let Some(channel) = self.to_flush.pop() {
            self.flush_channel(channel, out);
        }
    }

    /// The store has everything up to there: what waits for it is confirmed.
    pub fn handle_committed(&mut self, position: Position, out: &mut dyn Outbox<H>) {
        while let Some(waiting) = self.waiting.pop_front_if(|w| w.position <= position) {
            let Some(channel) = self.channels.find_mut(waiting.channel) else {
                continue;
            };
            let Some(confirms) = &mut channel.confirms else {
                continue;
            };
            confirms.waiting -= 1;
            // Those before it were confirmed when they came, or waited in this same line.
            match &mut confirms.ready {
                Some((_, to)) => *to = waiting.tag,
                ready => {
                    *ready = Some((waiting.tag, waiting.tag));
                    self.to_flush.push(waiting.channel);
                }
            }
        }
        shrink(&mut self.waiting);
        self.flush_confirms(out);
    }

    /// The store failed: what waits for anything up to there is refused, and not lost: its
    /// publisher may send it again, and has it twice then.
    pub fn handle_not_committed(&mut self, position: Position, out: &mut dyn Outbox<H>) {
        while let Some(waiting) = self.waiting.pop_front_if(|w| w.position <= position) {
            let Some(channel) = self.channels.find_mut(waiting.channel) else {
                continue;
            };
            if let Some(confirms) = &mut channel.confirms {
                confirms.waiting -= 1;
            }
            self.refuse(waiting.channel, waiting.tag, out);
        }
        shrink(&mut self.waiting);
        self.flush_confirms(out);
    }

    /// A publication is where it belongs, or will be when a store has come to `position`.
    pub(super) fn confirm(
        &mut self,
        key: ChannelKey,
        tag: u64,
        position: Option<Position>,
        out: &mut dyn Outbox<H>,
    ) {
        let Some(channel) = self.channels.find_mut(key) else {
            return;
        };
        let Some(confirms) = &mut channel.confirms else {
            return;
        };
        if let Some(position) = position {
            confirms.waiting += 1;
            self.waiting.push_back(Waiting {
                position,
                channel: key,
                tag,
            });
            return;
        }
        if confirms.waiting > 0 {
            // An acknowledgement of several would cover those that wait.
            self.counts.confirmed += 1;
            if let Some(connection) = self.connections.find(channel.connection) {
                let method = BasicAck {
                    delivery_tag: tag,
                    multiple: false,
                };
                out.send(&connection.handle, channel.number, &method.into());
            }
            return;
        }
        match &mut confirms.ready {
            Some((_, to)) => *to = tag,
            ready => {
                *ready = Some((tag, tag));
                self.to_flush.push(key);
            }
        }
    }

    /// A publication was not taken.
    pub(super) fn refuse(&mut self, key: ChannelKey, tag: u64, out: &mut dyn Outbox<H>) {
        self.flush_channel(key, out);
        let Some(channel) = self.channels.find(key) else {
            return;
        };
        if let Some(connection) = self.connections.find(channel.connection) {
            let method = BasicNack {
                delivery_tag: tag,
                multiple: false,
                requeue: false,
            };
            out.send(&connection.handle, channel.number, &method.into());
        }
    }

    pub(super) fn flush_channel(&mut self, key: ChannelKey, out: &mut dyn Outbox<H>) {
        let Some(channel) = self.channels.find_mut(key) else {
            return;
        };
        let Some((from, to)) = channel.confirms.as_mut().and_then(|c| c.ready.take()) else {
            return;
        };
        self.counts.confirmed += to - from + 1;
        if let Some(connection) = self.connections.find(channel.connection) {
            let method = BasicAck {
                delivery_tag: to,
                multiple: from != to,
            };
            out.send(&connection.handle, channel.number, &method.into());
        }
    }
}
