//! Supervision of an endpoint's connections: pings, maximum message size, and closing.

use std::sync::Arc;
use std::time::Duration;

use crosstie_config::{Ping, RawSocket, WebSocketOptions};
use crosstie_front::pings::{AppendPing, Pings};
use crosstie_front::watch::CLOSING_MAX;
use crosstie_wamp::framing::{Framing, rawsocket};

/// One value for all connections of an endpoint.
#[derive(Debug)]
pub(crate) struct Supervision {
    pub(super) pings: Arc<Pings>,
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
            pings: pings(&options.ping, |payload, out| {
                Framing::RawSocket.ping(payload, out);
            }),
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
            // A server's frames are not masked.
            pings: pings(&options.ping, |payload, out| {
                Framing::WebSocketServer { batched: false }.ping(payload, out);
            }),
            message_bytes_max: options.message_bytes_max,
            closing_max: options.close_handshake_timeout,
            echo_close: options.echo_close_codereason,
            fail_by_drop: options.fail_by_drop,
        }
    }
}

fn pings(ping: &Ping, append_ping: AppendPing) -> Arc<Pings> {
    Arc::new(Pings::new(append_ping, ping))
}
