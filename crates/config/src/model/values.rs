//! Values of keys, which stand alone.

use std::fmt;
use std::time::Duration;

/// Accepted values of `Origin` or `Host`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Allowed {
    All,
    /// Names of this machine's loopback.
    Loopback,
    /// Of an origin: the requested host with its port, so that a page comes from the same server.
    SameHost,
    /// Patterns with `*`.
    Matching(Vec<String>),
}

/// Storage of cookies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CookieStore {
    Memory,
    /// A path.
    File(String),
}

/// Detection of dead peers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ping {
    /// Silence after which a connection is pinged; without it there are no pings.
    pub interval: Option<Duration>,
    /// Maximum time for the answer; without it a missing answer ends nothing.
    pub timeout: Option<Duration>,
    pub payload_bytes: usize,
    /// Whether anything the peer sends counts as an answer.
    pub restart_on_any_traffic: bool,
}

impl Ping {
    pub const NONE: Self = Self {
        interval: None,
        timeout: None,
        payload_bytes: 12,
        restart_on_any_traffic: true,
    };
}

/// Location of files.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileSource {
    /// Relative to the node's directory.
    Directory(String),
    /// A folder inside a Python package.
    Package { package: String, resource: String },
}

/// The key that signs requests.
#[derive(Clone, PartialEq, Eq)]
pub struct RequestKey {
    pub key: String,
    pub secret: String,
}

impl fmt::Debug for RequestKey {
    /// Omits the secret, which must not reach a log.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("RequestKey");
        shown.field("key", &self.key).finish_non_exhaustive()
    }
}

/// Limits of a realm. The node's apply if they are lower.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RealmLimits {
    pub sessions_max: Option<usize>,
    /// Of all sessions together, like the next two fields.
    pub subscriptions_max: Option<usize>,
    pub registrations_max: Option<usize>,
    pub calls_pending_max: Option<usize>,
    /// Of each session.
    pub each: crosstie_routing::RoleLimits,
}
