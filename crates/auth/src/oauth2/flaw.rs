//! The reason for a refused token, for the log.

use std::fmt;

use crate::wamp::Cause;

/// A flaw of a token. The client gets the same answer for each.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Flaw {
    /// No JSON Web Token, or one with an algorithm that is not accepted.
    Malformed,
    WrongSignature,
    /// None of the keys could have made the signature.
    UnknownKey,
    /// The token names no key, and none is configured for such ones.
    NoKey,
    /// `nbf` is later than now.
    Early,
    /// `exp` is not later than now.
    Expired,
    /// A claim that the broker needs is missing, or has another type.
    Claim {
        name: String,
    },
    /// `aud` has other resource servers.
    Audience {
        expected: String,
    },
}

impl Flaw {
    pub(super) fn claim(name: &str) -> Self {
        let name = name.to_owned();
        Self::Claim { name }
    }
}

impl From<Cause> for Flaw {
    fn from(cause: Cause) -> Self {
        match cause {
            Cause::WrongSignature => Self::WrongSignature,
            Cause::UnknownKey => Self::UnknownKey,
            _ => Self::Malformed,
        }
    }
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed => f.write_str("no token with an accepted algorithm"),
            Self::WrongSignature => f.write_str("the token's signature is wrong"),
            Self::UnknownKey => f.write_str("no key of the issuer could have signed the token"),
            Self::NoKey => {
                f.write_str("the token names no key (`kid`), and there is no `default_key`")
            }
            Self::Early => f.write_str("the token is not valid yet (`nbf`)"),
            Self::Expired => f.write_str("the token has expired"),
            Self::Claim { name } => {
                write!(f, "the token's claim {name:?} is missing or malformed")
            }
            Self::Audience { expected } => {
                write!(f, "the token's claim \"aud\" does not have {expected:?}")
            }
        }
    }
}

impl std::error::Error for Flaw {}
