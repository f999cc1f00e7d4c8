//! SCRAM: RFC 5802 with SHA-256, as WAMP specifies it (advanced profile, "Salted Challenge Response Authentication"),
//! and in the earlier form of Crossbar.io and Autobahn.

mod exchange;
mod kdf;
mod keys;
mod login;
mod message;
mod principals;

pub use kdf::{Function, Kdf, KdfError, Reading};
pub use keys::{Keys, SaltedPassword};
pub use login::Scram;
pub use message::{AuthMessage, prepare_name};
pub use principals::{Credential, CredentialError, Principals};
