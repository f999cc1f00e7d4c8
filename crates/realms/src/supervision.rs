//! Supervision of an endpoint's connections: pings, maximum message size, and closing.

use std::time::Duration;

use crosstie_config::{Ping, RawSocket, WebSocketOptions};
use crosstie_front::watch::{AppendPing, CLOSING_MAX};
use crosstie_wamp::framing::{Framing, rawsocket};

/// One value for all connections of an endpoint.
#[derive(Debug)]
pub(crate) struct Supervision {
    pub(super) ping: Ping,
    /// Maximum message size of a session, in bytes.
    pub message_bytes_max: usize,
    /// Time for the peer to close its side after the last bytes were sent.
    pub(super) closing_max: Duration,
    /// A peer's Close is answered with its own code and reason, not with 1000.
    pub(super) echo_close: bool,
    /// A peer's fault ends the connection without a last message.
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

/// How the watch pings the clients of connections with that framing.
pub(super) fn append_ping(framing: Framing) -> AppendPing {
    match framing {
        Framing::RawSocket => |payload, out| Framing::RawSocket.ping(payload, out),
        Framing::LongPoll => |_, _| {},
        // A server's frames are not masked.
        _ => |payload, out| Framing::WebSocketServer { batched: false }.ping(payload, out),
    }
}
