//! No credentials.

use super::{AuthenticateError, Authenticator, Challenge, Signature};

/// No credentials: the router decides what such a client may do.
#[derive(Clone, Debug, Default)]
pub struct Anonymous {
    /// The requested authid; a router may assign another one.
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
        let reason = "this client is anonymous and has nothing to answer it with";
        Err(AuthenticateError::new(challenge, reason))
    }
}
