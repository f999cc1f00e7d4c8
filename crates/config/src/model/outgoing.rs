//! Crossbar.io's component classes that turn events and calls into HTTP requests. The router runs them itself.

use std::time::Duration;

/// A bridge from WAMP to HTTP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutgoingBridge {
    pub id: String,
    pub realm: String,
    pub role: String,
    pub kind: OutgoingKind,
    /// Maximum time for a server to answer.
    pub timeout: Duration,
    /// Maximum number of concurrent requests.
    pub requests_max: usize,
    pub answer_bytes_max: usize,
    /// Files of certificate authorities for HTTPS servers, beside the system's.
    pub ca_certificates: Vec<String>,
}

/// The class of a bridge.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OutgoingKind {
    /// Each event of these topics is a request.
    Forwarder {
        subscriptions: Vec<Forwarding>,
        method: String,
        /// Without it any status is accepted.
        expected_code: Option<u16>,
    },
    /// Each call of a procedure is a request, and the answer its result.
    Callee {
        base_url: String,
        procedure: String,
        /// Further servers that a call may use, as `https://host:port`.
        servers: Vec<String>,
    },
}

/// A topic and the URL of its events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forwarding {
    pub topic: String,
    pub url: String,
    pub match_policy: super::MatchPolicy,
}
