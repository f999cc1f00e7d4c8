//! What a handshake asks for.

use std::fmt;

use crosstie_wamp::Dict;

use super::{Authenticator, Derivation, Method, Principal, Refusal};

/// What is to be done next.
#[derive(Debug)]
pub enum Step {
    Accept(Box<Principal>),
    Challenge {
        method: Method,
        extra: Dict,
    },
    Call(Box<Call>),
    Derive(Box<Derivation>),
    /// The keys of tokens' issuer are to be fetched, if they were not just now.
    Fetch,
    Refuse(Refusal),
}

/// An authenticator to be called, with its three arguments.
#[derive(Clone, PartialEq)]
pub struct Call {
    pub authenticator: Authenticator,
    /// Empty where the client leaves it to the router.
    pub realm: String,
    pub authid: Option<String>,
    /// Without `transport`, which nobody here knows.
    pub details: Dict,
}

/// Without the details, a ticket among them.
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
