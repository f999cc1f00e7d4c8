//! The derivation of keys from a password. Clients do it at each login; the operator does it once per credential.

use std::fmt;

use argon2::{Algorithm, Argon2, Params, Version};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use sha2::Sha256;

use super::SaltedPassword;

/// A derivation function with its costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kdf {
    pub function: Function,
    pub iterations: u32,
    /// Unused by PBKDF2, for which Crossbar.io requires a value nevertheless.
    pub memory_kib: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    /// Version 1.3, one lane.
    Argon2id,
    /// With HMAC-SHA-256.
    Pbkdf2,
}

/// The encodings of the password's Argon2id hash among clients. A router with the derived keys does not need to know
/// which.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// Autobahn's: the hash in Base64, as text.
    Autobahn,
    /// The bytes of the hash, of a password normalized by SASLprep.
    Specification,
}

/// Costs for which no key can be derived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KdfError {
    Iterations,
    Memory,
    NoMemory,
    Salt,
    /// SASLprep forbids a character of it.
    Password,
}

impl Kdf {
    /// A client needs some seconds for this many.
    pub const ITERATIONS_MAX: u32 = 10_000_000;
    /// Argon2's minimum for one lane (RFC 9106, section 3.1).
    pub const MEMORY_KIB_MIN: u32 = Params::MIN_M_COST;
    /// 4 GiB.
    pub const MEMORY_KIB_MAX: u32 = 4 << 20;

    pub(super) fn check(&self) -> Result<(), KdfError> {
        if !(1..=Self::ITERATIONS_MAX).contains(&self.iterations) {
            return Err(KdfError::Iterations);
        }
        match (self.function, self.memory_kib) {
            (Function::Pbkdf2, _) => Ok(()),
            (Function::Argon2id, None) => Err(KdfError::NoMemory),
            (Function::Argon2id, Some(memory_kib)) => {
                let possible = Self::MEMORY_KIB_MIN..=Self::MEMORY_KIB_MAX;
                match possible.contains(&memory_kib) {
                    true => Ok(()),
                    false => Err(KdfError::Memory),
                }
            }
        }
    }

    /// Derives the key: takes milliseconds to seconds, and for Argon2id the memory.
    pub fn derive(
        &self,
        password: &str,
        salt: &[u8],
        reading: Reading,
    ) -> Result<SaltedPassword, KdfError> {
        self.check()?;
        let prepared = stringprep::saslprep(password).map_err(|_| KdfError::Password);
        let password = match (self.function, reading) {
            (Function::Argon2id, Reading::Autobahn) => password.as_bytes(),
            _ => &prepared?.into_owned().into_bytes(),
        };
        let mut hash = [0; 32];
        let Function::Argon2id = self.function else {
            pbkdf2::pbkdf2_hmac::<Sha256>(password, salt, self.iterations, &mut hash);
            return Ok(SaltedPassword::new(hash));
        };
        let memory_kib = self.memory_kib.unwrap_or(Self::MEMORY_KIB_MIN);
        let params = Params::new(memory_kib, self.iterations, 1, Some(hash.len()));
        let argon2 = params.map(|p| Argon2::new(Algorithm::Argon2id, Version::V0x13, p));
        let argon2 = argon2.map_err(|_| KdfError::Memory)?;
        argon2
            .hash_password_into(password, salt, &mut hash)
            .map_err(|_| KdfError::Salt)?;
        Ok(match reading {
            Reading::Specification => SaltedPassword::new(hash),
            Reading::Autobahn => SaltedPassword::new(STANDARD_NO_PAD.encode(hash)),
        })
    }
}

impl Function {
    pub const ALL: [Self; 2] = [Self::Argon2id, Self::Pbkdf2];

    /// By Crossbar.io's name or the specification's.
    pub fn parse(name: &str) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|f| f.name() == name || f.specified_name() == name)
    }

    /// Crossbar.io's and Autobahn's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Argon2id => "argon2id-13",
            Self::Pbkdf2 => "pbkdf2",
        }
    }

    /// The specification's name.
    pub fn specified_name(self) -> &'static str {
        match self {
            Self::Argon2id => "argon2id13",
            Self::Pbkdf2 => "pbkdf2",
        }
    }
}

impl fmt::Display for KdfError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Iterations => write!(f, "iterations: expected 1 to {}", Kdf::ITERATIONS_MAX),
            Self::Memory => write!(
                f,
                "memory: expected {} to {} KiB",
                Kdf::MEMORY_KIB_MIN,
                Kdf::MEMORY_KIB_MAX
            ),
            Self::NoMemory => {
                let name = Function::Argon2id.name();
                write!(f, "memory: expected a number of KiB, which {name} needs")
            }
            Self::Salt => f.write_str("salt: expected at least 8 bytes"),
            Self::Password => f.write_str("password: has a character that SASLprep forbids"),
        }
    }
}

impl std::error::Error for KdfError {}
