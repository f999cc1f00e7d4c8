//! The outputs of a handshake.

use std::fmt;

use crosstie_wamp::Dict;

use super::{Authenticator, Derivation, Method, Principal, Refusal};

/// The next step.
#[derive(Debug)]
pub enum Step {
    Accept(Box<Principal>),
    Challenge {
        method: Method,
        extra: Dict,
    },
    Call(Box<Call>),
    Derive(Box<Derivation>),
    /// Fetch the keys of the tokens' issuer, unless they were fetched just now.
    Fetch,
    Refuse(Refusal),
}

/// The call of an authenticator, with its three arguments.
#[derive(Clone, PartialEq)]
pub struct Call {
    pub authenticator: Authenticator,
    /// Empty if the client leaves the realm to the router.
    pub realm: String,
    pub authid: Option<String>,
    /// Without `transport`, which this crate does not know.
    pub details: Dict,
}

/// Omits the details, which may hold a ticket.
impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { realm, authid, .. } = self;
        write!(
            f,
            "Call({}, {realm:?}, {authid:?}, …)",
            self.authenticator.procedure
        )
    }
}
