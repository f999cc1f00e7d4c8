//! Who somebody is, and what they may do: users, password hashes, permissions, SASL mechanisms.
//!
//! ```text
//! an origin                  ─▶ Attempts::begin ─▶ now, or how much later
//! a mechanism and a response ─▶ Credentials ─▶ Users::authenticate ─▶ User
//! User, vhost ─▶ Permissions ─▶ may(Access::Write, "a queue's or an exchange's name")
//! HELLO, AUTHENTICATE, … ─▶ wamp::Handshake ─▶ wamp::Principal, or why not
//! ```
//!
//! Never: IO, a clock, randomness of its own (a salt is an argument).

mod attempts;
mod guesses;
mod password;
mod permissions;
mod recent;
pub mod sasl;
mod users;
pub mod wamp;

pub use attempts::{Admission, Attempts, Origin};
pub use guesses::{Guess, Guesses};
pub use password::{PasswordHash, PasswordHashError};
pub use permissions::{Access, PatternError, Permissions};
pub use users::{Refused, User, Users};
