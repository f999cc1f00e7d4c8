//! WAMP-cryptosign: WAMP advanced profile, "Cryptosign-based Authentication".

mod exchange;
mod key;
mod login;
mod principals;

use exchange::{Challenge, Fault, Opening};
use key::Parsed;
pub use key::{PublicKey, PublicKeyError, SigningKey};
pub use login::Cryptosign;
pub use principals::{KeyHolder, KeyHolders};
