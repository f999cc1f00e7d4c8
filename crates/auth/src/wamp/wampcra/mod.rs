//! WAMP-CRA: WAMP advanced profile, "Challenge Response Authentication".

mod challenge;
mod secret;
mod users;

pub(in crate::wamp) use challenge::Challenge;
pub use secret::{Derivation, Key, Salted, Secret, SecretError};
pub(in crate::wamp) use users::User;
pub use users::Users;
