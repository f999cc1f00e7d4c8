//! Components that a router itself is, in place of Crossbar.io's classes: events and calls become HTTP requests.

use std::time::Duration;

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutgoingBridge {
    pub id: String,
    pub realm: String,
    pub role: String,
    pub kind: OutgoingKind,
    /// How long a server may take to answer.
    pub timeout: Duration,
    /// Requests that are on their way at once.
    pub requests_max: usize,
    pub answer_bytes_max: usize,
    /// Files of authorities that are trusted beside the system's, for servers of HTTPS.
    pub ca_certificates: Vec<String>,
}

/// Which one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OutgoingKind {
    /// Each event of these topics is a request.
    Forwarder {
        subscriptions: Vec<Forwarding>,
        method: String,
        /// Any status will do where not said.
        expected_code: Option<u16>,
    },
    /// Each call of a procedure is a request, and the answer its result.
    Callee {
        base_url: String,
        procedure: String,
        /// Others that a call may lead to, as `https://host:port`.
        servers: Vec<String>,
    },
}

/// A topic, and where its events go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forwarding {
    pub topic: String,
    pub url: String,
    pub match_policy: super::MatchPolicy,
}
