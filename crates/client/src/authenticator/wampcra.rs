//! Challenge and response with a secret that both sides know.

use std::fmt;

use crosstie_auth::wamp::{Key, Salted};
use crosstie_wamp::{Dict, Value};

use super::challenge::entry;
use super::{AuthenticateError, Authenticator, Challenge, Signature};

/// A secret that is never sent: it signs the challenge, or with a salted challenge the key derived from it does. WAMP
/// advanced profile, "Challenge Response Authentication".
#[derive(Clone)]
pub struct WampCra {
    /// The user's name.
    pub authid: String,
    /// The user's secret.
    pub secret: String,
}

impl Authenticator for WampCra {
    fn method(&self) -> &str {
        "wampcra"
    }

    fn authid(&self) -> Option<&str> {
        Some(&self.authid)
    }

    fn answer(&self, challenge: &Challenge) -> Result<Signature, AuthenticateError> {
        let refuse = |reason: String| AuthenticateError::new(challenge, reason);
        let text = entry(&challenge.extra, "challenge").and_then(Value::as_str);
        let text = text.ok_or_else(|| refuse("expected a text as challenge".to_owned()))?;
        let key = match salted(&challenge.extra) {
            Ok(None) => Key::new(self.secret.as_str()),
            Ok(Some(salted)) => {
                // The router chooses these parameters, and the client does the work.
                salted.check().map_err(|error| refuse(error.to_string()))?;
                salted.derive(&self.secret)
            }
            Err(key) => return Err(refuse(format!("{key}: expected a positive number"))),
        };
        Ok(Signature {
            signature: key.sign(text),
            ..Signature::default()
        })
    }
}

/// The parameters of the key's derivation, if the challenge has any; an error names the malformed one.
fn salted(extra: &Dict) -> Result<Option<Salted>, &'static str> {
    let Some(salt) = entry(extra, "salt").and_then(Value::as_str) else {
        return Ok(None);
    };
    let number = |key: &'static str, default| match entry(extra, key) {
        None => Ok(default),
        Some(value) => {
            let number = value.as_u64().and_then(|number| u32::try_from(number).ok());
            number.ok_or(key)
        }
    };
    Ok(Some(Salted {
        salt: salt.to_owned(),
        iterations: number("iterations", Salted::ITERATIONS)?,
        key_bytes: number("keylen", Salted::KEY_BYTES)?,
    }))
}

/// Omits the secret.
impl fmt::Debug for WampCra {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WampCra({}, …)", self.authid)
    }
}
