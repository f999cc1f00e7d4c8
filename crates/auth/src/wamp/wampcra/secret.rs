//! Secrets and the keys derived from them.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use crosstie_wamp::{Dict, Value};
use sha2::Sha256;
use subtle::ConstantTimeEq as _;

use crate::wamp::mac::hmac;

/// The key with which a client signs its challenge.
#[derive(Clone, PartialEq, Eq)]
pub struct Key(pub(super) Vec<u8>);

/// The parameters with which a client derives its key; CHALLENGE carries them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Salted {
    pub salt: String,
    pub iterations: u32,
    pub key_bytes: u32,
}

/// A user's secret, ready for comparison.
///
/// A salted secret has two meanings. By the specification, and in Crossbar.io until 2025, it is the key derived from
/// the password. In later versions of Crossbar.io it is the password. Both keys are accepted: a client that knows
/// neither has neither key.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret {
    pub(super) as_it_is: Key,
    pub(super) derived: Option<Key>,
    pub(super) salted: Option<Salted>,
}

/// The derivation of a key.
#[derive(Clone, PartialEq, Eq)]
pub struct KeyDerivation {
    password: Key,
    salted: Salted,
}

/// A bound that a secret exceeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecretError {
    Iterations,
    KeyBytes,
}

impl Key {
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        Self(bytes.into())
    }

    pub(in crate::wamp) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// The text of the key: a derived key has one.
    pub fn text(&self) -> Option<&str> {
        std::str::from_utf8(&self.0).ok()
    }

    /// The signature of a challenge.
    pub fn sign(&self, challenge: &str) -> String {
        STANDARD.encode(hmac(&self.0, challenge.as_bytes()))
    }

    fn is(&self, bytes: &[u8]) -> bool {
        self.0.ct_eq(bytes).into()
    }

    /// Whether `signature` is made with this key. The comparison takes the same time wherever the two differ.
    pub(super) fn verify(&self, challenge: &str, signature: &str) -> bool {
        let expected = self.sign(challenge);
        expected.as_bytes().ct_eq(signature.as_bytes()).into()
    }
}

impl Salted {
    /// Crossbar.io's value if only a salt is given.
    pub const ITERATIONS: u32 = 1_000;
    pub const KEY_BYTES: u32 = 32;
    /// About a quarter of a second.
    pub const ITERATIONS_MAX: u32 = 1_000_000;
    /// Each 32 bytes take as long again, and those beyond the first 32 add no strength.
    pub const KEY_BYTES_MAX: u32 = 64;

    /// Refuses parameters that would take too long.
    pub fn check(&self) -> Result<(), SecretError> {
        if !(1..=Self::ITERATIONS_MAX).contains(&self.iterations) {
            return Err(SecretError::Iterations);
        }
        match (1..=Self::KEY_BYTES_MAX).contains(&self.key_bytes) {
            true => Ok(()),
            false => Err(SecretError::KeyBytes),
        }
    }

    /// The key of a password: Base64, as clients use it.
    pub fn derive(&self, password: impl AsRef<[u8]>) -> Key {
        let mut key = vec![0; self.key_bytes as usize];
        let salt = self.salt.as_bytes();
        pbkdf2::pbkdf2_hmac::<Sha256>(password.as_ref(), salt, self.iterations, &mut key);
        Key(STANDARD.encode(key).into_bytes())
    }

    fn tell(&self, extra: &mut Dict) {
        let number = |number: u32| Value::from(u64::from(number));
        extra.push(("salt".to_owned(), Value::from(self.salt.as_str())));
        extra.push(("iterations".to_owned(), number(self.iterations)));
        extra.push(("keylen".to_owned(), number(self.key_bytes)));
    }
}

impl Secret {
    /// A configured secret. Derives the key at once: a millisecond or less for a thousand iterations.
    pub fn new(secret: &str, salted: Option<Salted>) -> Result<Self, SecretError> {
        let mut new = Self::underived(secret, salted)?;
        new.derived = new.derivation().map(|derivation| derivation.derive());
        Ok(new)
    }

    /// A secret whose key is derived later, and only if it is needed.
    pub fn underived(secret: &str, salted: Option<Salted>) -> Result<Self, SecretError> {
        salted.as_ref().map_or(Ok(()), Salted::check)?;
        Ok(Self {
            as_it_is: Key::new(secret),
            derived: None,
            salted,
        })
    }

    /// Whether a client with that password signs with one of its keys.
    pub(super) fn is_of(&self, password: &str) -> bool {
        let Some(salted) = &self.salted else {
            return self.as_it_is.is(password.as_bytes());
        };
        // The secret is the password, or the key derived from it.
        let derived = salted.derive(password);
        self.as_it_is.is(password.as_bytes()) | self.as_it_is.is(&derived.0)
    }

    /// Adds the parameters of the key to `CHALLENGE.Extra`.
    pub(super) fn tell(&self, extra: &mut Dict) {
        if let Some(salted) = &self.salted {
            salted.tell(extra);
        }
    }

    /// Whether a signature is made with one of the keys derived so far.
    pub(super) fn verify(&self, challenge: &str, signature: &str) -> bool {
        let as_it_is = self.as_it_is.verify(challenge, signature);
        let derived = self.derived.as_ref();
        derived.is_some_and(|key| key.verify(challenge, signature)) | as_it_is
    }

    /// The derivation of the other key, unless it is done.
    pub(super) fn derivation(&self) -> Option<KeyDerivation> {
        match (&self.salted, &self.derived) {
            (Some(salted), None) => Some(KeyDerivation {
                password: self.as_it_is.clone(),
                salted: salted.clone(),
            }),
            _ => None,
        }
    }
}

impl KeyDerivation {
    /// Derives the key.
    pub fn derive(&self) -> Key {
        self.salted.derive(&self.password.0)
    }
}

/// Omits the bytes.
impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(…)")
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.salted {
            Some(salted) => write!(f, "Secret(…, {} iterations)", salted.iterations),
            None => f.write_str("Secret(…)"),
        }
    }
}

impl fmt::Debug for KeyDerivation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyDerivation(…, {} iterations)", self.salted.iterations)
    }
}

impl fmt::Display for SecretError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Iterations => write!(f, "iterations: expected 1 to {}", Salted::ITERATIONS_MAX),
            Self::KeyBytes => write!(f, "keylen: expected 1 to {}", Salted::KEY_BYTES_MAX),
        }
    }
}

impl std::error::Error for SecretError {}
