//! The identity that this client claims, and how it proves it.

mod anonymous;
mod cryptosign;
mod scram;
mod ticket;
mod wampcra;

use std::fmt;

use crosstie_wamp::{Dict, Value};
use thiserror::Error;

pub use anonymous::Anonymous;
pub use cryptosign::Cryptosign;
pub use scram::Scram;
pub use ticket::Ticket;
pub use wampcra::WampCra;

/// One way to authenticate. WAMP advanced profile, "Authentication Methods".
///
/// It is asked anew for each session, so a reconnecting client authenticates again.
pub trait Authenticator: Send + Sync {
    /// `HELLO.Details.authmethods` names it.
    fn method(&self) -> &str;

    /// `HELLO.Details.authid`, if this client asks for one.
    fn authid(&self) -> Option<&str> {
        None
    }

    /// `HELLO.Details.authextra`: what the method needs there. It is made for each session, and comes back
    /// with the challenge.
    fn hello_extra(&self) -> Dict {
        Dict::new()
    }

    /// The answer to a CHALLENGE: `AUTHENTICATE.Signature` and `AUTHENTICATE.Extra`.
    fn answer(&self, challenge: &Challenge) -> Result<Signature, AuthenticateError>;
}

/// What the router asks.
#[derive(Clone, Debug, PartialEq)]
pub struct Challenge {
    pub method: String,
    pub extra: Dict,
    /// What HELLO said as `authextra`.
    pub hello_extra: Dict,
}

/// What the router is answered.
#[derive(Clone, Default, PartialEq)]
pub struct Signature {
    pub signature: String,
    pub extra: Dict,
    /// What must stand in `WELCOME.Details.authextra`: the router's proof that it knows this client, where the
    /// method has one.
    pub welcome_extra: Dict,
}

impl fmt::Debug for Signature {
    // A ticket's signature is the secret itself; it must not end up in a log.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Signature { .. }")
    }
}

/// Why a challenge has no answer.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("challenge {method:?}: {reason}")]
pub struct AuthenticateError {
    pub method: String,
    pub reason: String,
}

impl AuthenticateError {
    fn new(challenge: &Challenge, reason: impl Into<String>) -> Self {
        Self {
            method: challenge.method.clone(),
            reason: reason.into(),
        }
    }
}

fn entry<'a>(dict: &'a Dict, key: &str) -> Option<&'a Value> {
    let found = dict.iter().find(|(name, _)| name == key);
    found.map(|(_, value)| value)
}
