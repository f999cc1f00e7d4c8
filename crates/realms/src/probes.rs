//! Requests by browsers and load balancers that have no page of their own: a WebSocket's path, the site's icon.

/// The page at a WebSocket's path, for probes of load balancers.
pub const WEBSOCKET_STATUS: &str = "A WebSocket is served here: clients of WAMP connect to it.";

/// A browser's request for the site's icon.
pub const FAVICON: &str = "/favicon.ico";
