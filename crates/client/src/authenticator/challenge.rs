//! A method of authentication: its challenge and its answer.

use std::fmt;

use crosstie_wamp::{Dict, Value};
use thiserror::Error;

/// A method of authentication. WAMP advanced profile, "Authentication Methods".
///
/// Called anew for each session, so a reconnecting client authenticates again.
pub trait Authenticator: Send + Sync {
    /// The name in `HELLO.Details.authmethods`.
    fn method(&self) -> &str;

    /// `HELLO.Details.authid`, if this client requests one.
    fn authid(&self) -> Option<&str> {
        None
    }

    /// `HELLO.Details.authextra`, for methods that need it. Made for each session, and passed back with the challenge.
    fn hello_extra(&self) -> Dict {
        Dict::new()
    }

    /// The answer to a CHALLENGE: `AUTHENTICATE.Signature` and `AUTHENTICATE.Extra`.
    fn answer(&self, challenge: &Challenge) -> Result<Signature, AuthenticateError>;
}

/// The router's challenge.
#[derive(Clone, Debug, PartialEq)]
pub struct Challenge {
    /// The method, `CHALLENGE.AuthMethod`.
    pub method: String,
    /// `CHALLENGE.Extra`.
    pub extra: Dict,
    /// The `authextra` of this session's HELLO.
    pub hello_extra: Dict,
}

/// The answer to a challenge.
#[derive(Clone, Default, PartialEq)]
pub struct Signature {
    /// `AUTHENTICATE.Signature`.
    pub signature: String,
    /// `AUTHENTICATE.Extra`.
    pub extra: Dict,
    /// The required content of `WELCOME.Details.authextra`: the router's proof that it knows this client, if the method
    /// has one.
    pub welcome_extra: Dict,
}

impl fmt::Debug for Signature {
    // A ticket's signature is the secret itself, which must not be logged.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Signature { .. }")
    }
}

/// The reason why a challenge cannot be answered.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("challenge {method:?}: {reason}")]
pub struct AuthenticateError {
    /// The challenge's method.
    pub method: String,
    /// The reason, for people.
    pub reason: String,
}

impl AuthenticateError {
    pub(super) fn new(challenge: &Challenge, reason: impl Into<String>) -> Self {
        Self {
            method: challenge.method.clone(),
            reason: reason.into(),
        }
    }
}

pub(super) fn entry<'a>(dict: &'a Dict, key: &str) -> Option<&'a Value> {
    let found = dict.iter().find(|(name, _)| name == key);
    found.map(|(_, value)| value)
}
