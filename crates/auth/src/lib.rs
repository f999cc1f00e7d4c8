//! Who somebody is, and what they may do: users, password hashes, permissions, SASL mechanisms.
//!
//! ```text
//! an origin and a name       ─▶ Guesses::may_look ─▶ whether credentials are looked at
//! a mechanism and a response ─▶ Credentials ─▶ Users::authenticate ─▶ User
//! User, vhost ─▶ Permissions ─▶ may(Access::Write, "a queue's or an exchange's name")
//! a private key in PEM ─▶ private_key::why_unusable ─▶ why TLS cannot be spoken with it
//! HELLO, AUTHENTICATE, … ─▶ wamp::Handshake ─▶ wamp::Principal, or why not
//! ```
//!
//! Never: IO, a clock, randomness of its own (a salt is an argument).

mod guesses;
mod origin;
mod password;
mod permissions;
pub mod private_key;
mod recent;
pub mod sasl;
mod users;
pub mod wamp;

pub use guesses::{Guess, Guesses};
pub use origin::Origin;
pub use password::{PasswordHash, PasswordHashError};
pub use permissions::{Access, PatternError, Permissions};
pub use users::{Refused, User, Users};
