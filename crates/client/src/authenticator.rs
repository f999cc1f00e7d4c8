//! The identity that this client claims, and how it proves it.

use std::fmt;

use crosstie_wamp::Dict;
use thiserror::Error;

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

    /// `HELLO.Details.authextra`: what the method needs there.
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
}

/// What the router is answered.
#[derive(Clone, PartialEq)]
pub struct Signature {
    pub signature: String,
    pub extra: Dict,
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

/// No proof: the router decides what a stranger may do.
#[derive(Clone, Debug, Default)]
pub struct Anonymous {
    /// Asked for; a router need not grant it.
    pub authid: Option<String>,
}

impl Authenticator for Anonymous {
    fn method(&self) -> &str {
        "anonymous"
    }

    fn authid(&self) -> Option<&str> {
        self.authid.as_deref()
    }

    fn answer(&self, challenge: &Challenge) -> Result<Signature, AuthenticateError> {
        Err(AuthenticateError {
            method: challenge.method.clone(),
            reason: "this client is anonymous and has nothing to answer it with".to_owned(),
        })
    }
}
