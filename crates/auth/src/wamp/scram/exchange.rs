//! The messages before a proof: nonces, the challenge, and AUTHENTICATE.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use crosstie_wamp::{Dict, Value};
use subtle::{Choice, ConstantTimeEq as _};

use super::message::names;
use super::{AuthMessage, Credential};
use crate::wamp::next::Authenticate;
use crate::wamp::refusal::NOT_AUTHORIZED;
use crate::wamp::{Cause, Method, Refusal};

/// The options of HELLO.
pub(super) struct Opening {
    client_nonce: String,
    /// The prefix of the router's nonce.
    nonce_bytes: Vec<u8>,
}

/// The content of a challenge.
pub(super) struct Challenge {
    client_nonce: String,
    nonce: String,
    salt: String,
    credential: Credential,
}

/// Maximum length of a client's nonce in bytes. 16 are common.
const NONCE_BYTES_MAX: usize = 256;

/// The same for a nonce that is text.
const NONCE_CHARACTERS_MAX: usize = 344;

impl Opening {
    /// Reads `HELLO.Details.authextra`.
    pub(super) fn read(method: Method, extra: Option<&Dict>) -> Result<Self, Refusal> {
        let extra = extra.map_or(&[][..], Vec::as_slice);
        if let Some(binding) = find(extra, "channel_binding") {
            let text = format!(
                "HELLO.Details.authextra.channel_binding: SCRAM is bound to no channel here; expected null, \
                 found {}",
                binding.as_str().unwrap_or("no text")
            );
            let cause = Cause::NoChannelBinding;
            return Err(Refusal::new(NOT_AUTHORIZED, text, cause));
        }
        let client_nonce = find(extra, "nonce").and_then(Value::as_str);
        let bytes = match (method, client_nonce) {
            // RFC 5802's form, of which Base64 is a part.
            (Method::WampScram, Some(nonce)) if is_printable(nonce) => Some(nonce.into()),
            (Method::WampScram, _) => None,
            (_, nonce) => nonce.and_then(|nonce| STANDARD.decode(nonce).ok()),
        };
        let bytes_max = match method {
            Method::WampScram => NONCE_CHARACTERS_MAX,
            _ => NONCE_BYTES_MAX,
        };
        match (client_nonce, bytes) {
            (Some(nonce), Some(bytes)) if (1..=bytes_max).contains(&bytes.len()) => Ok(Self {
                client_nonce: nonce.to_owned(),
                nonce_bytes: bytes,
            }),
            _ => {
                let form = match method {
                    Method::WampScram => "printable ASCII characters without a comma",
                    _ => "bytes in Base64",
                };
                let text = format!(
                    "HELLO.Details.authextra.nonce: expected 1 to {bytes_max} {form}, which SCRAM needs"
                );
                Err(Refusal::new(NOT_AUTHORIZED, text, Cause::MalformedExtra))
            }
        }
    }

    /// The challenge for `credential`; `chance` must be unpredictable.
    pub(super) fn challenge(
        self,
        method: Method,
        credential: Credential,
        chance: [u8; 16],
    ) -> Challenge {
        let Self {
            client_nonce,
            nonce_bytes,
        } = self;
        let nonce = match method {
            // By the specification, a client checks that the router's nonce begins with its own.
            Method::WampScram => format!("{client_nonce}{}", STANDARD.encode(chance)),
            _ => STANDARD.encode([&nonce_bytes[..], &chance].concat()),
        };
        Challenge {
            client_nonce,
            nonce,
            salt: STANDARD.encode(credential.salt()),
            credential,
        }
    }
}

impl Challenge {
    /// `CHALLENGE.Extra`. Autobahn fails on a key that it does not know.
    pub(super) fn extra(&self, method: Method) -> Dict {
        let kdf = self.credential.kdf();
        let is_specified = method == Method::WampScram;
        let function = match is_specified {
            true => kdf.function.specified_name(),
            false => kdf.function.name(),
        };
        let number = |number: u32| Value::from(u64::from(number));
        let mut extra = vec![
            ("nonce".to_owned(), Value::from(self.nonce.as_str())),
            ("kdf".to_owned(), Value::from(function)),
            ("salt".to_owned(), Value::from(self.salt.as_str())),
            ("iterations".to_owned(), number(kdf.iterations)),
        ];
        match kdf.memory_kib {
            Some(memory_kib) => extra.push(("memory".to_owned(), number(memory_kib))),
            None if is_specified => extra.push(("memory".to_owned(), Value::Null)),
            None => {}
        }
        extra
    }

    /// The router's own proof, if the client's proof is valid.
    pub(super) fn verify(
        &self,
        authid: &str,
        authenticate: Authenticate<'_>,
    ) -> Result<Option<String>, Refusal> {
        let repeats = self.check_extra(authenticate.extra)?;
        let proof = STANDARD.decode(authenticate.signature).unwrap_or_default();
        let proof: Option<[u8; 32]> = proof.try_into().ok();
        let keys = self.credential.keys();
        let mut verifier = None;
        for name in names(authid) {
            for binding in AuthMessage::BINDINGS {
                let message = AuthMessage {
                    name: &name,
                    client_nonce: &self.client_nonce,
                    nonce: &self.nonce,
                    salt: &self.salt,
                    iterations: self.credential.kdf().iterations,
                    binding,
                };
                let message = message.to_string();
                let is_right = keys.verify(&message, &proof.unwrap_or_default());
                let found = keys.verifier(&message);
                if bool::from(is_right & repeats) && proof.is_some() {
                    verifier = Some(found);
                }
            }
        }
        Ok(verifier)
    }

    /// Whether AUTHENTICATE repeats the values that the specification has it repeat. Autobahn repeats none.
    fn check_extra(&self, extra: &Dict) -> Result<Choice, Refusal> {
        for key in ["channel_binding", "cbind_data"] {
            if find(extra, key).is_some() {
                let text = format!("AUTHENTICATE.Extra.{key}: expected null, as HELLO had it");
                return Err(malformed(text));
            }
        }
        match find(extra, "nonce") {
            None => Ok(Choice::from(1)),
            Some(Value::String(nonce)) => Ok(nonce.as_bytes().ct_eq(self.nonce.as_bytes())),
            Some(_) => Err(malformed(
                "AUTHENTICATE.Extra.nonce: expected text".to_owned(),
            )),
        }
    }
}

fn malformed(text: String) -> Refusal {
    Refusal::new(NOT_AUTHORIZED, text, Cause::MalformedExtra)
}

/// Whether a nonce has the characters that RFC 5802 allows.
fn is_printable(nonce: &str) -> bool {
    nonce.chars().all(|c| c.is_ascii_graphic() && c != ',')
}

/// Null counts as absent.
fn find<'d>(dict: &'d [(String, Value)], key: &str) -> Option<&'d Value> {
    let found = dict.iter().find(|(name, _)| name == key);
    found.map(|(_, value)| value).filter(|v| **v != Value::Null)
}
