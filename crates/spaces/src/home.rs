//! The place that a listener's MQTT clients connect to, as a conversation sees it.

use std::sync::Arc;
use std::time::Instant;

use crosstie_front::end_reason::EndReason;
use crosstie_front::listen::Listening;
use crosstie_mqtt::{Auth, Connect, Packet, ReasonCode, Version};

use crate::conversation::{Conversation, End, Step};

/// The place of a listener's clients: a topic space of a realm, or an AMQP vhost.
///
/// ```text
/// log_in (again, as long as it returns false) ─▶ handle (each packet) ─▶ leave
///    └─ awaits_auth: authenticate ─┘
/// ```
pub trait Home: Send + Sync + Sized + 'static {
    /// A client that has sent CONNECT.
    type LoggingIn: Send;
    /// A connected client.
    type Open: Send;

    fn listening(&self) -> &Arc<Listening>;

    /// Maximum size of a packet from a client.
    fn packet_bytes_max(&self, open: &Self::Open) -> u32;

    /// Handles CONNECT, and sets the conversation's state. Returns false if an outcome is due, after which CONNECT is
    /// handled again.
    fn log_in(
        conversation: &mut Conversation<Self>,
        connect: &Connect<'_>,
        now: Instant,
    ) -> Result<bool, End>;

    /// Whether a login waits for an outcome.
    fn is_login_due(login: &Self::LoggingIn) -> bool;

    /// Whether a login waits for AUTH.
    fn awaits_auth(_login: &Self::LoggingIn) -> bool {
        false
    }

    /// Length of the AUTH behind CONNECT that a login has handled.
    fn auth_bytes(_login: &Self::LoggingIn) -> usize {
        0
    }

    /// Handles an AUTH of so many bytes, which a login waits for, like [`Self::log_in`].
    fn authenticate(
        _conversation: &mut Conversation<Self>,
        _connect: &Connect<'_>,
        _auth: (&Auth<'_>, usize),
        _now: Instant,
    ) -> Result<bool, End> {
        Err(End::Reason(ReasonCode::ProtocolError))
    }

    /// Gives up a login.
    fn abandon(login: Self::LoggingIn, seen: EndReason);

    fn version(open: &Self::Open) -> Version;

    /// Handles the packet at the front of the input.
    fn handle(
        &self,
        open: &mut Self::Open,
        packet: &Packet<'_>,
        consumed: usize,
        now: Instant,
    ) -> Result<Step, End>;

    /// Whether an outcome is due before the next packet.
    fn waits(open: &Self::Open) -> bool;

    /// Whether the outcome that is due may be long in coming.
    fn is_held_back(open: &Self::Open) -> bool;

    /// Ends a client's connection: a client of MQTT 5 learns the reason.
    fn end(open: &Self::Open, reason: ReasonCode);

    /// Takes a client out. A stop publishes no wills: the clients are there, and come back.
    fn leave(self: &Arc<Self>, open: Self::Open, why: EndReason, is_stop: bool);
}
