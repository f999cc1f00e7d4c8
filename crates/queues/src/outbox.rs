//! The output of a vhost.

use std::sync::Arc;

use crosstie_amqp::{Method, Properties};

use crate::Fault;

/// Sends the vhost's methods and messages. `H` names a connection to it.
pub trait Outbox<H> {
    /// Sends a method without content. Never refused: the owner closes a connection that cannot be answered.
    fn send(&mut self, to: &H, channel: u16, method: &Method<'_>);

    /// Delivers a message from a queue. A refused message stays in the queue, and its connection is sent nothing until
    /// [`crate::Vhost::resume`].
    fn send_content(
        &mut self,
        to: &H,
        channel: u16,
        method: &Method<'_>,
        properties: Properties<'_>,
        body: &[u8],
    ) -> Result<(), Refused>;

    /// Sends a method whose content is requested, or stays in no queue: `basic.return`, `basic.get-ok`, a direct reply.
    /// The owner closes a connection that cannot be sent it, as for [`Self::send`].
    fn send_owed(
        &mut self,
        to: &H,
        channel: u16,
        method: &Method<'_>,
        properties: Properties<'_>,
        body: &[u8],
    ) -> Result<(), Refused>;

    /// The vhost has closed a channel by itself. The owner sends `channel.close`, and waits for `close-ok`.
    fn close_channel(&mut self, to: &H, channel: u16, fault: &Fault);

    /// The name of a connection for the copy of a traced message; `None` if none is to be made now.
    fn traced_name(&self, of: &H) -> Option<Arc<str>> {
        let _ = of;
        None
    }

    /// Changes the bytes held for a connection, beside its messages: its channels, its consumers, its unacknowledged
    /// deliveries. All of them are released, at the latest when the connection is closed.
    fn hold(&mut self, to: &H, delta: isize) {
        let _ = (to, delta);
    }
}

/// Why a message was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The peer does not read; it may later.
    Full,
    /// The connection is gone.
    Gone,
}
