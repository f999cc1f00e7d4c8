//! The end of sessions that the router closes: GOODBYE, or a close that makes clients reconnect.

use std::borrow::Cow;

use crosstie_wamp::{Message, Value};

use crate::message_counts::Messages;
use crate::peer::Peer;

/// RFC 6455, section 7.4.1: "an endpoint is going away". Clients reconnect after it.
pub(crate) const GOING_AWAY: u16 = 1001;

/// The reason why the router ends sessions without a fault.
pub struct Farewell<'t> {
    pub(super) reason: &'static str,
    pub text: &'t str,
}

impl<'t> Farewell<'t> {
    /// An operator ends one session with a text.
    pub fn killed(text: &'t str) -> Self {
        let reason = "wamp.close.killed";
        Self { reason, text }
    }
}

impl Farewell<'static> {
    pub const SHUTDOWN: Self = Self {
        reason: "wamp.close.system_shutdown",
        text: "the router is shutting down",
    };
    pub const STOP_TRANSPORT: Self = Self {
        reason: Self::SHUTDOWN.reason,
        text: "this transport of the router is shutting down",
    };
    pub(crate) const CLOSE_REALM: Self = Self {
        reason: "wamp.close.close_realm",
        text: "the realm was stopped",
    };
    pub(crate) const STOP_ROLE: Self = Self {
        reason: "wamp.close.killed",
        text: "the session's role was stopped",
    };
}

/// Queues GOODBYE for a session that the router ends.
pub fn say_goodbye(messages: &Messages, peer: &Peer, farewell: &Farewell<'_>) {
    let details = vec![("message".to_owned(), Value::from(farewell.text))];
    let reason = Cow::Borrowed(farewell.reason);
    // If GOODBYE cannot be queued, the client finds its connection closed.
    let _ = peer.send_counted(messages, &Message::Goodbye { details, reason });
}

/// Closes the connection so that the client reconnects, after its pending output. GOODBYE, as the specification has it,
/// makes JavaScript clients stay away.
pub fn close_for_return(peer: &Peer) {
    let framing = peer.wire.framing;
    peer.connection
        .append_last(|out| framing.close(GOING_AWAY, "", out));
}

/// The reason of a GOODBYE that answers one with the reason `said`. Autobahn's clients leave with a reason of their
/// own, and Crossbar.io answers with the same: their programs take that for success.
pub(super) fn answer_to(said: &str) -> &'static str {
    match said {
        "wamp.close.normal" => "wamp.close.normal",
        _ => "wamp.close.goodbye_and_out",
    }
}
