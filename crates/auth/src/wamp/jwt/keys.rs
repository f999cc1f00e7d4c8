//! Public keys as issuers publish them: JSON Web Key Sets (RFC 7517).

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use crosstie_wamp::codec::{self, Limits};
use crosstie_wamp::{Dict, Serializer, Value};
use ring::signature::{self, RsaPublicKeyComponents, UnparsedPublicKey};

use super::Algorithm;

/// The public keys of an issuer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Jwks {
    keys: Vec<Key>,
}

/// The reason why a text is not a set of keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JwksError {
    Json,
    NoKeys,
    TooMany,
    /// The number of the key, and its missing or malformed member.
    Key {
        number: usize,
        member: &'static str,
    },
    /// None of the keys is of a supported kind.
    NoneKnown,
}

#[derive(Clone, Debug, PartialEq)]
struct Key {
    id: Option<String>,
    /// The only algorithm that the key is for, if it names one.
    algorithm: Option<Algorithm>,
    material: Material,
}

#[derive(Clone, Debug, PartialEq)]
enum Material {
    Rsa { n: Vec<u8>, e: Vec<u8> },
    P256(Vec<u8>),
    P384(Vec<u8>),
    Ed25519(Vec<u8>),
}

/// Issuers have a handful.
const KEYS_MAX: usize = 256;

/// The outcome of verifying a signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verified {
    Right,
    Wrong,
    /// No key could have made it.
    NoKey,
}

impl Jwks {
    /// Reads a set. Keys of other kinds and for other uses are skipped.
    pub fn parse(text: &str) -> Result<Self, JwksError> {
        let value = codec::decode_value(Serializer::Json, text.as_bytes(), &Limits::default());
        let value = value.map_err(|_| JwksError::Json)?;
        let dict = value.as_dict().ok_or(JwksError::NoKeys)?;
        let Some(Value::List(items)) = find(dict, "keys") else {
            return Err(JwksError::NoKeys);
        };
        if items.len() > KEYS_MAX {
            return Err(JwksError::TooMany);
        }
        let mut keys = Vec::new();
        for (number, item) in (1..).zip(items) {
            let wrong = |member| JwksError::Key { number, member };
            let item = item.as_dict().ok_or_else(|| wrong("kty"))?;
            keys.extend(Key::read(item).map_err(wrong)?);
        }
        match keys.is_empty() {
            true => Err(JwksError::NoneKnown),
            false => Ok(Self { keys }),
        }
    }

    /// Describes the supported keys to the operator: name, kind, and the algorithm that a key is restricted to.
    pub fn descriptions(
        &self,
    ) -> impl Iterator<Item = (Option<&str>, &'static str, Option<Algorithm>)> {
        let keys = self.keys.iter();
        keys.map(|key| (key.id.as_deref(), key.material.name(), key.algorithm))
    }

    /// Verifies `signed` with the key of that name, or with each key.
    pub(super) fn verify(
        &self,
        algorithm: Algorithm,
        id: Option<&str>,
        signed: &[u8],
        signature: &[u8],
    ) -> Verified {
        let mut found = Verified::NoKey;
        let fitting = self.keys.iter().filter(|key| {
            id.is_none_or(|id| key.id.as_deref() == Some(id))
                && key.algorithm.is_none_or(|only| only == algorithm)
        });
        for key in fitting {
            match key.material.verify(algorithm, signed, signature) {
                None => {}
                Some(true) => return Verified::Right,
                Some(false) => found = Verified::Wrong,
            }
        }
        found
    }
}

impl Key {
    /// Reads a key. `None` for another kind or use; an error names the missing or malformed member.
    fn read(dict: &Dict) -> Result<Option<Self>, &'static str> {
        let text = |name| find(dict, name).and_then(Value::as_str);
        if text("use").is_some_and(|usage| usage != "sig") {
            return Ok(None);
        }
        let algorithm = match text("alg") {
            None => None,
            Some(name) => match Algorithm::parse(name) {
                None => return Ok(None),
                known => known,
            },
        };
        let bytes = |name: &'static str| {
            let text = find(dict, name).and_then(Value::as_str).ok_or(name)?;
            URL_SAFE_NO_PAD.decode(text).map_err(|_| name)
        };
        let coordinate = |name, length| bytes(name).and_then(|b| exactly(b, length).ok_or(name));
        let point = |length| {
            let (x, y) = (coordinate("x", length)?, coordinate("y", length)?);
            Ok::<_, &'static str>([&[4][..], &x, &y].concat())
        };
        let material = match (text("kty").ok_or("kty")?, text("crv")) {
            ("RSA", _) => Material::Rsa {
                n: stripped(bytes("n")?),
                e: stripped(bytes("e")?),
            },
            ("EC", Some("P-256")) => Material::P256(point(32)?),
            ("EC", Some("P-384")) => Material::P384(point(48)?),
            ("OKP", Some("Ed25519")) => Material::Ed25519(coordinate("x", 32)?),
            _ => return Ok(None),
        };
        Ok(Some(Self {
            id: text("kid").map(str::to_owned),
            algorithm,
            material,
        }))
    }
}

impl Material {
    /// The name in a set of keys.
    fn name(&self) -> &'static str {
        match self {
            Self::Rsa { .. } => "RSA",
            Self::P256(_) => "P-256",
            Self::P384(_) => "P-384",
            Self::Ed25519(_) => "Ed25519",
        }
    }

    /// `None` if the algorithm is not one for such a key.
    fn verify(&self, algorithm: Algorithm, signed: &[u8], signature: &[u8]) -> Option<bool> {
        let outcome = match (self, algorithm) {
            (Self::Rsa { n, e }, _) => {
                let parameters = match algorithm {
                    Algorithm::Rs256 => &signature::RSA_PKCS1_2048_8192_SHA256,
                    Algorithm::Rs384 => &signature::RSA_PKCS1_2048_8192_SHA384,
                    Algorithm::Rs512 => &signature::RSA_PKCS1_2048_8192_SHA512,
                    Algorithm::Ps256 => &signature::RSA_PSS_2048_8192_SHA256,
                    Algorithm::Ps384 => &signature::RSA_PSS_2048_8192_SHA384,
                    Algorithm::Ps512 => &signature::RSA_PSS_2048_8192_SHA512,
                    Algorithm::Es256 | Algorithm::Es384 | Algorithm::EdDsa => return None,
                };
                RsaPublicKeyComponents { n, e }.verify(parameters, signed, signature)
            }
            (Self::P256(point), Algorithm::Es256) => {
                let key = UnparsedPublicKey::new(&signature::ECDSA_P256_SHA256_FIXED, point);
                key.verify(signed, signature)
            }
            (Self::P384(point), Algorithm::Es384) => {
                let key = UnparsedPublicKey::new(&signature::ECDSA_P384_SHA384_FIXED, point);
                key.verify(signed, signature)
            }
            (Self::Ed25519(point), Algorithm::EdDsa) => {
                UnparsedPublicKey::new(&signature::ED25519, point).verify(signed, signature)
            }
            _ => return None,
        };
        Some(outcome.is_ok())
    }
}

fn exactly(bytes: Vec<u8>, length: usize) -> Option<Vec<u8>> {
    (bytes.len() == length).then_some(bytes)
}

/// Without leading zeros, which ring rejects.
fn stripped(bytes: Vec<u8>) -> Vec<u8> {
    bytes.into_iter().skip_while(|byte| *byte == 0).collect()
}

fn find<'d>(dict: &'d Dict, key: &str) -> Option<&'d Value> {
    let found = dict.iter().find(|(name, _)| name == key);
    found.map(|(_, value)| value)
}

impl fmt::Display for JwksError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Json => f.write_str("expected JSON"),
            Self::NoKeys => f.write_str("expected an object with a list \"keys\""),
            Self::TooMany => write!(f, "expected at most {KEYS_MAX} keys"),
            Self::Key { number, member } => {
                write!(f, "key {number}: {member:?} is missing or malformed")
            }
            Self::NoneKnown => f.write_str(
                "none of its keys can be used: expected RSA, EC with P-256 or P-384, or OKP with Ed25519, for signatures",
            ),
        }
    }
}

impl std::error::Error for JwksError {}
