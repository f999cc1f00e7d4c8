//! Authentication and authorization: users, password hashes, permissions, SASL mechanisms.
//!
//! ```text
//! an origin and a name       ─▶ Guesses::may_look ─▶ whether the credentials may be checked
//! a mechanism and a response ─▶ Credentials ─▶ Users::authenticate ─▶ User
//! User, vhost ─▶ Permissions ─▶ may(Access::Write, "a queue's or an exchange's name")
//! a private key in PEM ─▶ private_key::why_unusable ─▶ the reason why TLS cannot use it
//! a certificate in DER ─▶ x509::read ─▶ its subject, alternative names, validity and extensions
//! a token ─▶ oauth2::Rules ─▶ oauth2::Token ─▶ Grants ─▶ may(Access::Write, "a queue's or an exchange's name")
//! HELLO, AUTHENTICATE, … ─▶ wamp::Handshake ─▶ wamp::Principal, or a refusal
//! ```
//!
//! Never: IO, a clock, randomness of its own (a salt is an argument).

mod guesses;
pub mod oauth2;
mod origin;
mod password;
mod permissions;
pub mod private_key;
mod recent;
pub mod sasl;
mod users;
pub mod wamp;
pub mod x509;

pub use guesses::{Guess, Guesses};
pub use origin::Origin;
pub use password::{PasswordHash, PasswordHashError};
pub use permissions::{
    Access, CLIENT_ID, ClientPattern, Judge, PatternError, Permissions, ResourceKind,
};
pub use users::{Refused, User, Users};
