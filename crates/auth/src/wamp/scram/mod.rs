//! SCRAM: RFC 5802 with SHA-256, as WAMP has it (advanced profile, "Salted Challenge Response Authentication"), and
//! as Crossbar.io and Autobahn had it before that was written down.

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
