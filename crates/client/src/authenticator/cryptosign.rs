//! A key pair, of which the router knows the public half.

use std::fmt;
use std::sync::Arc;

use crosstie_auth::wamp::SigningKey;
use crosstie_wamp::{Dict, Value};

use super::challenge::entry;
use super::{AuthenticateError, Authenticator, Challenge, Signature};

/// WAMP-cryptosign: the client signs the router's challenge with Ed25519. WAMP advanced profile, "Cryptosign-based
/// Authentication".
pub struct Cryptosign {
    /// `None`: the router finds it by the key.
    pub authid: Option<String>,
    /// The key pair.
    pub key: Arc<SigningKey>,
}

impl Authenticator for Cryptosign {
    fn method(&self) -> &str {
        "cryptosign"
    }

    fn authid(&self) -> Option<&str> {
        self.authid.as_deref()
    }

    fn hello_extra(&self) -> Dict {
        vec![
            (
                "pubkey".to_owned(),
                Value::String(self.key.public_hexadecimal()),
            ),
            ("channel_binding".to_owned(), Value::Null),
        ]
    }

    fn answer(&self, challenge: &Challenge) -> Result<Signature, AuthenticateError> {
        let text = entry(&challenge.extra, "challenge").and_then(Value::as_str);
        let signature = text.and_then(|text| self.key.sign_hexadecimal(text));
        let signature = signature.ok_or_else(|| {
            AuthenticateError::new(challenge, "challenge: expected 64 hexadecimal digits")
        })?;
        Ok(Signature {
            signature,
            ..Signature::default()
        })
    }
}

impl fmt::Debug for Cryptosign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cryptosign({:?}, {:?})", self.authid, self.key)
    }
}
