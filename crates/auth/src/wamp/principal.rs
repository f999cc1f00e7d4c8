//! The principal of a session, as its handshake determines it.

use std::sync::Arc;

use crosstie_wamp::Dict;

use super::Method;

/// The principal and realm of a session. The realm may not exist.
#[derive(Clone, Debug, PartialEq)]
pub struct Principal {
    pub realm: String,
    pub authid: String,
    pub authrole: Arc<str>,
    pub authmethod: Method,
    pub authprovider: Provider,
    /// The `authextra` of its WELCOME.
    pub authextra: Dict,
}

/// The source of a session's identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Provider {
    /// The configuration.
    Static,
    /// A procedure that was called.
    Dynamic,
    /// A function that the node hosts.
    Function,
    /// The cookie of an earlier login.
    Cookie,
}

impl Provider {
    /// In the order of their declaration.
    pub const ALL: [Self; 4] = [Self::Static, Self::Dynamic, Self::Function, Self::Cookie];

    /// As in WELCOME.
    pub fn name(self) -> &'static str {
        match self {
            Self::Static => "static",
            Self::Dynamic => "dynamic",
            Self::Function => "function",
            Self::Cookie => "cookie",
        }
    }
}
