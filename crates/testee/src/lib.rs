//! Echo systems that the instruments measure: WebSocket, and streams of bytes.
//!
//! A testee runs wherever there are listeners and workers: in a worker process of its own, as
//! the command line starts them, or inside a router. What it owes a peer is bounded: nothing is
//! read from a connection while its answers wait to be sent.

mod serve;
mod statistics;
mod streams;
mod websocket;

use std::sync::Arc;

use crosstie_transport::tls::ServerConfig;
use crosstie_transport::{Listener, Workers};
use crosstie_wamp::framing::websocket::DeflateConfig;

pub use serve::{Served, Serving, serve};
pub use statistics::{Statistics, Totals};

/// What is done with the bytes of a connection.
#[derive(Clone, Debug)]
pub enum Testee {
    /// Every message comes back.
    WebSocket(WebSocketOptions),
    /// One of the services for bytes without messages.
    Stream(Mode),
}

/// Options of a WebSocket testee.
#[derive(Clone, Copy, Debug)]
pub struct WebSocketOptions {
    /// The largest message, in bytes, inflated.
    pub message_bytes_max: usize,
    /// The largest payload of one frame, in bytes as they are sent.
    pub frame_bytes_max: usize,
    /// What is agreed to when a client offers permessage-deflate. None: nothing.
    pub deflate: Option<DeflateConfig>,
    /// A peer's Close is answered with its own code and reason, not with its code alone.
    pub echo_close: bool,
    /// A peer's fault ends the connection without a Close that tells it.
    pub fail_by_drop: bool,
    /// Whether responses name the program and its version.
    pub show_server_version: bool,
}

impl Default for WebSocketOptions {
    fn default() -> Self {
        Self {
            message_bytes_max: 64 << 20,
            frame_bytes_max: usize::MAX,
            deflate: None,
            echo_close: false,
            fail_by_drop: false,
            show_server_version: false,
        }
    }
}

/// What becomes of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// They come back (RFC 862).
    #[default]
    Echo,
    /// They are thrown away (RFC 863).
    Discard,
    /// They are thrown away, and others are sent without end (RFC 864).
    Chargen,
}

/// Accepts connections for ever, and serves them on `workers`.
pub async fn accept(
    testee: Arc<Testee>,
    listener: Listener,
    workers: Arc<Workers>,
    tls: Option<Arc<ServerConfig>>,
    statistics: Arc<Statistics>,
) {
    serve::accept(Serving::new(testee, workers, tls, statistics), listener).await;
}
