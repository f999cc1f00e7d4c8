//! Requests of browsers and load balancers for which there is no page: a WebSocket's path, a picture of the site.

/// The page of a WebSocket, which probes of load balancers ask for.
pub(crate) const WEBSOCKET_STATUS: &str =
    "A WebSocket is served here: clients of WAMP connect to it.";

/// A browser's request for a picture of the site.
pub(crate) const FAVICON: &str = "/favicon.ico";
