//! The output of a vhost.

use crosstie_amqp::{Method, Properties};

use crate::Fault;

/// Where a vhost's methods and messages go. `H` names a connection to it.
pub trait Outbox<H> {
    /// Sends a method without content. It is never refused: a connection that cannot be answered
    /// is closed by the owner.
    fn send(&mut self, to: &H, channel: u16, method: &Method<'_>);

    /// Delivers a message from a queue. A refused one stays there, and its connection is left
    /// alone until [`crate::Vhost::resume`] says that its socket takes bytes again.
    fn send_content(
        &mut self,
        to: &H,
        channel: u16,
        method: &Method<'_>,
        properties: Properties<'_>,
        body: &[u8],
    ) -> Result<(), Refused>;

    /// Sends a method with its content that no queue keeps for later, or that was asked for:
    /// `basic.return`, `basic.get-ok`, a direct reply. It is an answer, as what [`Self::send`]
    /// sends: a connection that cannot be given it is closed by the owner.
    fn send_owed(
        &mut self,
        to: &H,
        channel: u16,
        method: &Method<'_>,
        properties: Properties<'_>,
        body: &[u8],
    ) -> Result<(), Refused>;

    /// The vhost has closed a channel by itself; the owner says so, and waits for `close-ok`.
    fn close_channel(&mut self, to: &H, channel: u16, fault: &Fault);

    /// So many bytes more, or fewer, are held here for a connection, beside its messages: its
    /// channels, its consumers, what waits for its acknowledgement. Every one that is held is let
    /// go of again, at the latest when the connection is closed.
    fn hold(&mut self, to: &H, delta: isize) {
        let _ = (to, delta);
    }
}

/// A message was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The peer does not read; later perhaps.
    Full,
    /// The connection is gone.
    Gone,
}
