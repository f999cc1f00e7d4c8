//! The HTTP requests of a listener that open no WebSocket of its own.

use std::sync::Arc;

use crosstie_front::admission::Excess;
use crosstie_front::serve::HandedOver;

use crate::entrance::Entrance;

/// Serves those requests. An entrance knows nothing more about web services and pages; they reach realms as its own
/// conversations do.
pub trait Http: Send + Sync {
    /// Whether a client may begin with HTTP/2.
    fn speaks_http2(&self) -> bool;

    /// Whether a request for a WebSocket at that path is the server's.
    fn takes_websocket(&self, path: &str) -> bool;

    /// Whether a connection may ask that is one too many.
    fn takes(&self, excess: Option<Excess>) -> bool;

    /// Answers the requests of a connection until it ends.
    fn serve(self: Arc<Self>, entrance: Arc<Entrance>, handed: HandedOver<'_>);
}
