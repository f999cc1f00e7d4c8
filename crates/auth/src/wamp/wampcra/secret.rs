//! Secrets and the keys that are made of them.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use crosstie_wamp::{Dict, Value};
use sha2::Sha256;
use subtle::ConstantTimeEq as _;

use crate::wamp::mac::hmac;

/// What a client signs its challenge with.
#[derive(Clone, PartialEq, Eq)]
pub struct Key(pub(super) Vec<u8>);

/// How a client makes its key of a password: what CHALLENGE tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Salted {
    pub salt: String,
    pub iterations: u32,
    pub key_bytes: u32,
}

/// A user's secret, ready to be compared with.
///
/// A salted secret has two readings. The specification's, and Crossbar.io's until 2025: it is the key that
/// was derived from the password. Crossbar.io's since: it is the password. Who knows neither the one nor the
/// other signs with neither key, so that both are taken.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret {
    pub(super) as_it_is: Key,
    pub(super) derived: Option<Key>,
    pub(super) salted: Option<Salted>,
}

/// What is to be done for a key that nobody has derived yet.
#[derive(Clone, PartialEq, Eq)]
pub struct KeyDerivation {
    password: Key,
    salted: Salted,
}

/// A bound that a secret does not keep.
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

    /// As text, which a key that was derived is.
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

    /// Whether `signature` is this key's, in a time that says nothing about where it differs.
    pub(super) fn verify(&self, challenge: &str, signature: &str) -> bool {
        let expected = self.sign(challenge);
        expected.as_bytes().ct_eq(signature.as_bytes()).into()
    }
}

impl Salted {
    /// What Crossbar.io takes where a salt is given and nothing else.
    pub const ITERATIONS: u32 = 1_000;
    pub const KEY_BYTES: u32 = 32;
    /// A quarter of a second, about.
    pub const ITERATIONS_MAX: u32 = 1_000_000;
    /// Each 32 bytes take as long again, and those beyond the first add nothing.
    pub const KEY_BYTES_MAX: u32 = 64;

    /// Refuses what would take too long.
    pub fn check(&self) -> Result<(), SecretError> {
        if !(1..=Self::ITERATIONS_MAX).contains(&self.iterations) {
            return Err(SecretError::Iterations);
        }
        match (1..=Self::KEY_BYTES_MAX).contains(&self.key_bytes) {
            true => Ok(()),
            false => Err(SecretError::KeyBytes),
        }
    }

    /// The key of a password: Base64, as clients take it.
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
    /// A secret as a configuration has it. A key is derived here and now: a millisecond or less for a
    /// thousand iterations.
    pub fn new(secret: &str, salted: Option<Salted>) -> Result<Self, SecretError> {
        let mut new = Self::underived(secret, salted)?;
        new.derived = new.derivation().map(|derivation| derivation.derive());
        Ok(new)
    }

    /// The same, whose key is yet to be derived where it turns out to be needed.
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
        // The secret is the password, or what is made of it.
        let derived = salted.derive(password);
        self.as_it_is.is(password.as_bytes()) | self.as_it_is.is(&derived.0)
    }

    /// Adds to `CHALLENGE.Extra` what a client needs for its key.
    pub(super) fn tell(&self, extra: &mut Dict) {
        if let Some(salted) = &self.salted {
            salted.tell(extra);
        }
    }

    /// Whether a signature is of one of the keys that are there.
    pub(super) fn verify(&self, challenge: &str, signature: &str) -> bool {
        let as_it_is = self.as_it_is.verify(challenge, signature);
        let derived = self.derived.as_ref();
        derived.is_some_and(|key| key.verify(challenge, signature)) | as_it_is
    }

    /// What is to be done for the other key, if there is one and it is not there.
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
    /// Does it.
    pub fn derive(&self) -> Key {
        self.salted.derive(&self.password.0)
    }
}

/// Without the bytes.
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
