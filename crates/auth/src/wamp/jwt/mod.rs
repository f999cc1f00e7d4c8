//! JSON Web Tokens (RFC 7519), signed with a key of which the router has the public half.
//!
//! No secret is shared, so neither `none` nor symmetric algorithms are implemented: a token cannot be forged from
//! public data.

mod algorithm;
mod keys;
mod login;
mod rules;
mod source;
pub(crate) mod token;

pub use algorithm::Algorithm;
pub use keys::{Jwks, JwksError};
pub use login::Jwt;
pub use rules::Rules;
pub use source::KeysUrl;
pub use token::unverified;
