//! A ticket, which the router receives as it is.

use std::fmt;

use super::{AuthenticateError, Authenticator, Challenge, Signature};

/// A ticket. Use it over TLS, or with a router on the same machine: a reader of the connection obtains it. WAMP
/// advanced profile, "Ticket-based Authentication".
#[derive(Clone)]
pub struct Ticket {
    /// The user's name.
    pub authid: String,
    /// The ticket, as the router has it.
    pub ticket: String,
}

impl Authenticator for Ticket {
    fn method(&self) -> &str {
        "ticket"
    }

    fn authid(&self) -> Option<&str> {
        Some(&self.authid)
    }

    fn answer(&self, _: &Challenge) -> Result<Signature, AuthenticateError> {
        Ok(Signature {
            signature: self.ticket.clone(),
            ..Signature::default()
        })
    }
}

/// Omits the ticket.
impl fmt::Debug for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ticket({}, …)", self.authid)
    }
}
