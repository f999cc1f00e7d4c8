//! WAMP-CRA: WAMP advanced profile, "Challenge Response Authentication".

mod challenge;
mod login;
mod secret;
mod users;

pub use login::WampCra;
pub use secret::{Key, KeyDerivation, Salted, Secret, SecretError};
pub use users::Users;
