//! Who a session is, as its handshake has found.

use std::sync::Arc;

use crosstie_wamp::Dict;

use super::Method;

/// Who a session is and where it goes, before anybody has looked whether there is such a realm.
#[derive(Clone, Debug, PartialEq)]
pub struct Principal {
    pub realm: String,
    pub authid: String,
    pub authrole: Arc<str>,
    pub authmethod: Method,
    pub authprovider: Provider,
    /// What it is told as `authextra`.
    pub authextra: Dict,
}

/// Who has said who the session is.
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

    /// As WELCOME has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Static => "static",
            Self::Dynamic => "dynamic",
            Self::Function => "function",
            Self::Cookie => "cookie",
        }
    }
}
