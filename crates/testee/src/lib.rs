//! Echo systems that the instruments measure: WebSocket, and streams of bytes.
//!
//! A testee runs with any listeners and workers: in a worker process of its own, started by the command line, or inside
//! a router. Its queue for a peer is bounded: a connection is not read while its answers wait to be sent.

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

/// The treatment of a connection's bytes.
#[derive(Clone, Debug)]
pub enum Testee {
    /// Echoes every message.
    WebSocket(WebSocketOptions),
    /// One of the services for bytes without messages.
    Stream(Mode),
}

/// Options of a WebSocket testee.
#[derive(Clone, Copy, Debug)]
pub struct WebSocketOptions {
    /// Maximum size of a message in bytes, inflated.
    pub message_bytes_max: usize,
    /// Maximum payload of one frame in bytes, as sent.
    pub frame_bytes_max: usize,
    /// The accepted parameters of permessage-deflate; `None` declines it.
    pub deflate: Option<DeflateConfig>,
    /// Answer a peer's Close with its own code and reason, not with its code alone.
    pub echo_close: bool,
    /// End the connection at a peer's fault without a Close that names it.
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

/// The treatment of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Sends them back (RFC 862).
    #[default]
    Echo,
    /// Discards them (RFC 863).
    Discard,
    /// Discards them, and sends others without end (RFC 864).
    Chargen,
}

/// Accepts connections forever, and serves them on `workers`.
pub async fn accept(
    testee: Arc<Testee>,
    listener: Listener,
    workers: Arc<Workers>,
    tls: Option<Arc<ServerConfig>>,
    statistics: Arc<Statistics>,
) {
    serve::accept(Serving::new(testee, workers, tls, statistics), listener).await;
}
