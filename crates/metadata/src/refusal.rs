//! The reason why a change is refused.

use std::fmt;

/// A refused change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub kind: RefusalKind,
    /// RabbitMQ's text where RabbitMQ refuses the same.
    pub reason: String,
}

/// The kind of a refusal, which the HTTP API answers with a status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RefusalKind {
    /// The entry does not exist. The reason is empty.
    Absent,
    /// The configuration names the entry. The reason has the configuration's key.
    Configured,
    /// Another node has the vhost, or no node at present.
    Elsewhere,
    /// The change is malformed, or names something that does not exist.
    Invalid,
    /// The vhost does not exist.
    NoVhost,
    /// The store cannot keep the change, so it is not made.
    NotStored,
    /// This broker does not do that.
    Unsupported,
}

impl Refusal {
    pub fn new(kind: RefusalKind, reason: impl Into<String>) -> Self {
        Self {
            kind,
            reason: reason.into(),
        }
    }

    pub(crate) fn absent() -> Self {
        Self::new(RefusalKind::Absent, "")
    }

    /// The vhost is replicated, and not on this node.
    pub fn elsewhere(vhost: &str) -> Self {
        let reason = format!("vhost '{vhost}' is replicated, and this node does not own it");
        Self::new(RefusalKind::Elsewhere, reason)
    }

    pub(crate) fn invalid(reason: impl Into<String>) -> Self {
        Self::new(RefusalKind::Invalid, reason)
    }

    pub(crate) fn no_vhost() -> Self {
        Self::new(RefusalKind::NoVhost, "vhost_not_found")
    }

    /// The status of the HTTP API.
    pub fn status(&self) -> u16 {
        match self.kind {
            RefusalKind::Absent | RefusalKind::NoVhost => 404,
            RefusalKind::Configured => 409,
            RefusalKind::Invalid | RefusalKind::Unsupported => 400,
            RefusalKind::Elsewhere | RefusalKind::NotStored => 503,
        }
    }

    /// The word for the key `error` of the HTTP API's body.
    pub fn error(&self) -> &'static str {
        match self.kind {
            RefusalKind::Absent => "Object Not Found",
            RefusalKind::NoVhost => "not_found",
            RefusalKind::Configured => "conflict",
            RefusalKind::Invalid | RefusalKind::Unsupported => "bad_request",
            RefusalKind::Elsewhere | RefusalKind::NotStored => "service_unavailable",
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            RefusalKind::Absent => f.write_str("Not Found"),
            _ => f.write_str(&self.reason),
        }
    }
}

impl std::error::Error for Refusal {}
