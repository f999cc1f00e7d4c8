//! Who somebody is, and what they may do: users, password hashes, permissions, SASL mechanisms.
//!
//! ```text
//! an origin                  ─▶ Attempts::begin ─▶ now, or how much later
//! a mechanism and a response ─▶ Credentials ─▶ Users::authenticate ─▶ User
//! User, vhost ─▶ Permissions ─▶ may(Access::Write, "a queue's or an exchange's name")
//! ```
//!
//! Never: IO, a clock, randomness of its own (a salt is an argument).

mod attempts;
mod password;
mod permissions;
pub mod sasl;
mod users;

pub use attempts::{Admission, Attempts, Origin};
pub use password::{PasswordHash, PasswordHashError};
pub use permissions::{Access, PatternError, Permissions};
pub use users::{Refused, User, Users};
