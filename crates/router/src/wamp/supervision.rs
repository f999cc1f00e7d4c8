//! How the connections of one endpoint are supervised: pings, the longest message, and how they close.

use std::time::Duration;

use crosstie_config::{Ping, RawSocket, WebSocketOptions};
use crosstie_wamp::framing::rawsocket;

/// The time to close for connections that have no option for it: those that were turned away, and RawSockets.
pub(crate) const CLOSING_MAX: Duration = Duration::from_secs(2);

/// One for all connections of an endpoint.
#[derive(Debug)]
pub(crate) struct Supervision {
    pub(super) ping: Ping,
    /// The longest message that a session may send, in bytes.
    pub(super) message_bytes_max: usize,
    /// The peer has so long to close its side after the last bytes were sent to it.
    pub(super) closing_max: Duration,
    /// A peer's Close is answered with its own code and reason, not with 1000.
    pub(super) echo_close: bool,
    /// A peer's fault ends the connection without the last words.
    pub(super) fail_by_drop: bool,
}

impl From<&RawSocket> for Supervision {
    fn from(options: &RawSocket) -> Self {
        Self {
            ping: options.ping,
            message_bytes_max: rawsocket::announced_length(options.message_bytes_max),
            closing_max: CLOSING_MAX,
            echo_close: false,
            fail_by_drop: false,
        }
    }
}

impl From<&WebSocketOptions> for Supervision {
    fn from(options: &WebSocketOptions) -> Self {
        Self {
            ping: options.ping,
            message_bytes_max: options.message_bytes_max,
            closing_max: options.close_handshake_timeout,
            echo_close: options.echo_close_codereason,
            fail_by_drop: options.fail_by_drop,
        }
    }
}
