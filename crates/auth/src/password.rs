//! Password hashes in RabbitMQ's formats.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use md5::Md5;
use sha2::digest::Digest;
use sha2::{Sha256, Sha512};
use subtle::ConstantTimeEq;

/// A salted hash; RabbitMQ's `password_hash` with its `hashing_algorithm`: the salt, then the
/// hash of salt and password.
#[derive(Clone, PartialEq, Eq)]
pub struct PasswordHash {
    algorithm: Algorithm,
    salt: [u8; SALT_BYTES],
    hash: Vec<u8>,
}

/// The reason why a text is not a password hash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PasswordHashError {
    Algorithm {
        found: String,
    },
    Base64,
    Length {
        bytes: usize,
        expected: usize,
        algorithm: &'static str,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Algorithm {
    Md5,
    Sha256,
    Sha512,
}

const SALT_BYTES: usize = 4;

impl PasswordHash {
    /// Hashes a password with RabbitMQ's default algorithm. `salt` must be unpredictable.
    pub fn of(password: &[u8], salt: [u8; SALT_BYTES]) -> Self {
        let algorithm = Algorithm::Sha256;
        Self {
            algorithm,
            salt,
            hash: algorithm.hash(salt, password),
        }
    }

    /// A hash that no password has, in RabbitMQ's default algorithm.
    pub(crate) fn decoy() -> Self {
        Self::no_password(Algorithm::Sha256)
    }

    /// A hash that no password has, as slow to compare as this one.
    pub(crate) fn decoy_alike(&self) -> Self {
        Self::no_password(self.algorithm)
    }

    fn no_password(algorithm: Algorithm) -> Self {
        Self {
            algorithm,
            salt: [0; SALT_BYTES],
            hash: vec![0; algorithm.hash_bytes()],
        }
    }

    /// Reads `password_hash`, in Base64, and `hashing_algorithm`. Without the latter RabbitMQ means
    /// `rabbit_password_hashing_sha256`.
    pub fn parse(text: &str, algorithm: Option<&str>) -> Result<Self, PasswordHashError> {
        let algorithm = algorithm.map_or(Ok(Algorithm::Sha256), Algorithm::parse)?;
        let bytes = STANDARD
            .decode(text)
            .map_err(|_| PasswordHashError::Base64)?;
        let expected = SALT_BYTES + algorithm.hash_bytes();
        match bytes.split_first_chunk() {
            Some((salt, hash)) if bytes.len() == expected => Ok(Self {
                algorithm,
                salt: *salt,
                hash: hash.to_owned(),
            }),
            _ => Err(PasswordHashError::Length {
                bytes: bytes.len(),
                expected,
                algorithm: algorithm.name(),
            }),
        }
    }

    /// Whether this is the hash of `password`. The comparison takes the same time wherever the two differ.
    pub fn verify(&self, password: &[u8]) -> bool {
        let hash = self.algorithm.hash(self.salt, password);
        hash.ct_eq(&self.hash).into()
    }

    /// Base64, as in definitions.
    pub fn to_text(&self) -> String {
        STANDARD.encode([&self.salt, &self.hash[..]].concat())
    }

    /// RabbitMQ's name of the algorithm.
    pub fn algorithm(&self) -> &'static str {
        self.algorithm.name()
    }
}

impl Algorithm {
    const ALL: [Self; 3] = [Self::Md5, Self::Sha256, Self::Sha512];

    fn parse(name: &str) -> Result<Self, PasswordHashError> {
        let found = Self::ALL.into_iter().find(|a| a.name() == name);
        found.ok_or_else(|| PasswordHashError::Algorithm {
            found: name.to_owned(),
        })
    }

    fn name(self) -> &'static str {
        match self {
            Self::Md5 => "rabbit_password_hashing_md5",
            Self::Sha256 => "rabbit_password_hashing_sha256",
            Self::Sha512 => "rabbit_password_hashing_sha512",
        }
    }

    fn hash_bytes(self) -> usize {
        match self {
            Self::Md5 => 16,
            Self::Sha256 => 32,
            Self::Sha512 => 64,
        }
    }

    fn hash(self, salt: [u8; SALT_BYTES], password: &[u8]) -> Vec<u8> {
        fn digest<D: Digest>(salt: &[u8], password: &[u8]) -> Vec<u8> {
            D::new()
                .chain_update(salt)
                .chain_update(password)
                .finalize()
                .to_vec()
        }
        match self {
            Self::Md5 => digest::<Md5>(&salt, password),
            Self::Sha256 => digest::<Sha256>(&salt, password),
            Self::Sha512 => digest::<Sha512>(&salt, password),
        }
    }
}

/// Logs print configurations, so hashes are left out.
impl fmt::Debug for PasswordHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PasswordHash({}, …)", self.algorithm.name())
    }
}

impl fmt::Display for PasswordHashError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Algorithm { found } => {
                write!(f, "unknown hashing algorithm {found:?}, expected ")?;
                let names = Algorithm::ALL.map(Algorithm::name);
                f.write_str(&names.join(", "))
            }
            Self::Base64 => f.write_str("a password hash that is not Base64"),
            Self::Length {
                bytes,
                expected,
                algorithm,
            } => write!(
                f,
                "a password hash of {bytes} bytes, expected {expected} for {algorithm}, salt included"
            ),
        }
    }
}

impl std::error::Error for PasswordHashError {}
