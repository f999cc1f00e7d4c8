//! A password of which the router stores too little to impersonate the client.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use crosstie_auth::wamp::scram::{AuthMessage, Function, Kdf, Reading, prepare_name};
use crosstie_wamp::{Dict, Value};

use super::challenge::entry;
use super::{AuthenticateError, Authenticator, Challenge, Signature};

/// SCRAM, under the name `scram` and in the form of Crossbar.io and Autobahn. Both sides prove knowledge of the
/// password or its derived keys, which exposes a router without them.
#[derive(Clone)]
pub struct Scram {
    /// The user's name.
    pub authid: String,
    /// The user's password.
    pub password: String,
}

const NONCE_BYTES: usize = 16;

/// Maximum memory that a router may demand of a client: seconds, and a quarter of a gigabyte.
const MEMORY_KIB_MAX: u32 = 256 << 10;

impl Authenticator for Scram {
    fn method(&self) -> &str {
        "scram"
    }

    fn authid(&self) -> Option<&str> {
        Some(&self.authid)
    }

    fn hello_extra(&self) -> Dict {
        let mut nonce = [0; NONCE_BYTES];
        // Without randomness there is no nonce, and the router refuses a HELLO without one.
        match getrandom::fill(&mut nonce) {
            Ok(()) => vec![("nonce".to_owned(), Value::String(STANDARD.encode(nonce)))],
            Err(_) => Dict::new(),
        }
    }

    fn answer(&self, challenge: &Challenge) -> Result<Signature, AuthenticateError> {
        let refuse = |reason: String| AuthenticateError::new(challenge, reason);
        let text = |dict, key: &str| {
            let text = entry(dict, key).and_then(Value::as_str);
            text.ok_or_else(|| refuse(format!("{key}: expected text")))
        };
        let client_nonce = text(&challenge.hello_extra, "nonce")?;
        let nonce = text(&challenge.extra, "nonce")?;
        let [own, both] = [client_nonce, nonce].map(|nonce| STANDARD.decode(nonce));
        let (Ok(own), Ok(both)) = (own, both) else {
            return Err(refuse("nonce: expected Base64".to_owned()));
        };
        if !both.starts_with(&own) || both.len() == own.len() {
            let reason = "nonce: expected this client's, followed by the router's";
            return Err(refuse(reason.to_owned()));
        }
        let salt = text(&challenge.extra, "salt")?;
        let salt_bytes = STANDARD.decode(salt);
        let salt_bytes = salt_bytes.map_err(|_| refuse("salt: expected Base64".to_owned()))?;
        let kdf = kdf(&challenge.extra).map_err(|expected| refuse(expected.to_owned()))?;
        let derived = kdf.derive(&self.password, &salt_bytes, Reading::Autobahn);
        let derived = derived.map_err(|error| refuse(error.to_string()))?;
        let message = AuthMessage {
            name: &prepare_name(&self.authid),
            client_nonce,
            nonce,
            salt,
            iterations: kdf.iterations,
            binding: AuthMessage::NO_BINDING,
        };
        let verifier = derived.keys().verifier(&message.to_string());
        Ok(Signature {
            signature: derived.prove(&message),
            extra: Dict::new(),
            welcome_extra: vec![("scram_server_signature".to_owned(), Value::String(verifier))],
        })
    }
}

fn kdf(extra: &Dict) -> Result<Kdf, &'static str> {
    let number = |key| {
        let number = entry(extra, key).and_then(Value::as_u64);
        number.and_then(|number| u32::try_from(number).ok())
    };
    let function = entry(extra, "kdf").and_then(Value::as_str);
    let function = function.and_then(Function::parse);
    let kdf = Kdf {
        function: function.ok_or("kdf: expected argon2id-13 or pbkdf2")?,
        iterations: number("iterations").ok_or("iterations: expected a positive number")?,
        memory_kib: number("memory"),
    };
    match kdf.memory_kib {
        Some(memory_kib) if memory_kib > MEMORY_KIB_MAX => Err("memory: expected at most 256 MiB"),
        _ => Ok(kdf),
    }
}

/// Omits the password.
impl fmt::Debug for Scram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Scram({}, …)", self.authid)
    }
}
