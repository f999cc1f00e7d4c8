//! Principals with their keys, and the decoys for unknown ones.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::{Function, Kdf, KdfError, Keys, Reading};
use crate::wamp::decoys::Decoys;
use crate::wamp::mac::{hmac, optional};
use crate::wamp::source;
use crate::wamp::{SigningKey, hexadecimal};

/// A router's knowledge of a principal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credential {
    kdf: Kdf,
    salt: Vec<u8>,
    keys: Keys,
}

/// The reason why a credential is malformed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CredentialError {
    Kdf(KdfError),
    Function { found: String },
    Salt,
    Key { name: &'static str },
}

/// Principals with SCRAM keys.
#[derive(Clone, Default, PartialEq)]
pub struct Principals {
    by_authid: BTreeMap<String, Known>,
    decoys: Decoys<Known>,
}

#[derive(Clone, PartialEq)]
pub(super) struct Known {
    pub(super) credential: Credential,
    pub(super) role: Option<Arc<str>>,
}

impl Credential {
    /// Maximum length of a salt in bytes; each login sends it.
    pub const SALT_BYTES_MAX: usize = 256;

    pub fn new(kdf: Kdf, salt: Vec<u8>, keys: Keys) -> Result<Self, CredentialError> {
        kdf.check().map_err(CredentialError::Kdf)?;
        match (1..=Self::SALT_BYTES_MAX).contains(&salt.len()) {
            true => Ok(Self { kdf, salt, keys }),
            false => Err(CredentialError::Salt),
        }
    }

    /// Reads Crossbar.io's form: the name of the function, its costs, and the rest in hexadecimal digits.
    pub fn parse(
        function: &str,
        iterations: u32,
        memory_kib: Option<u32>,
        [salt, stored, server]: [&str; 3],
    ) -> Result<Self, CredentialError> {
        let Some(function) = Function::parse(function) else {
            let found = function.to_owned();
            return Err(CredentialError::Function { found });
        };
        let kdf = Kdf {
            function,
            iterations,
            memory_kib,
        };
        let salt = hexadecimal::decode_all(salt).ok_or(CredentialError::Salt)?;
        let key = |name, text| hexadecimal::decode(text).ok_or(CredentialError::Key { name });
        let keys = Keys {
            stored: key("stored-key", stored)?,
            server: key("server-key", server)?,
        };
        Self::new(kdf, salt, keys)
    }

    /// Finds which client's password preparation (Autobahn's or the specification's) matches. Costs one key derivation
    /// each.
    fn reading_of(&self, password: &str) -> Option<Reading> {
        let mut readings = [Reading::Autobahn, Reading::Specification].into_iter();
        readings.find(|reading| {
            let derived = self.kdf.derive(password, &self.salt, *reading);
            derived.is_ok_and(|derived| derived.keys() == self.keys)
        })
    }

    pub(super) fn kdf(&self) -> Kdf {
        self.kdf
    }

    pub(super) fn salt(&self) -> &[u8] {
        &self.salt
    }

    pub(super) fn keys(&self) -> &Keys {
        &self.keys
    }
}

impl Principals {
    /// Adds a principal. Without a role it has the method's default role.
    pub fn insert(&mut self, authid: &str, credential: Credential, role: Option<&str>) {
        let role = role.map(Arc::from);
        let known = Known { credential, role };
        let secret = &known.credential.keys.stored;
        self.decoys.insert(authid, secret, &known);
        self.by_authid.insert(authid.to_owned(), known);
    }

    /// Checks a password for the operator: which clients can log in with it, if any. `None` if the principal does not
    /// exist.
    pub fn reading_of(&self, authid: &str, password: &str) -> Option<Option<Reading>> {
        let known = self.by_authid.get(authid)?;
        Some(known.credential.reading_of(password))
    }

    pub(super) fn find(&self, authid: &str) -> Option<&Known> {
        self.by_authid.get(authid)
    }

    /// The decoy of an unknown principal, the same each time for an authid: one of the principals, with another salt
    /// and random keys.
    pub(super) fn decoy(&self, authid: &str, key: Option<&SigningKey>) -> Option<Known> {
        let (mut decoy, seed) = self.decoys.find("scram", authid, key)?;
        let mut block = hmac(&seed, b"salt");
        for bytes in decoy.credential.salt.chunks_mut(block.len()) {
            bytes.copy_from_slice(&block[..bytes.len()]);
            block = hmac(&seed, &block);
        }
        decoy.credential.keys = Keys {
            stored: hmac(&seed, b"stored"),
            server: hmac(&seed, b"server"),
        };
        Some(decoy)
    }
}

impl source::Principals for Principals {
    fn entries(&self) -> Box<dyn Iterator<Item = (&str, Option<&str>)> + '_> {
        let entries = self.by_authid.iter();
        Box::new(entries.map(|(authid, known)| (authid.as_str(), known.role.as_deref())))
    }

    fn credential(&self, authid: &str) -> Option<Vec<Vec<u8>>> {
        let Known { credential, role } = self.by_authid.get(authid)?;
        let Credential { salt, keys, .. } = credential;
        let (stored, server) = (keys.stored.to_vec(), keys.server.to_vec());
        Some(vec![
            optional(role.as_deref()),
            salt.clone(),
            stored,
            server,
        ])
    }
}

impl fmt::Debug for Principals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = self.by_authid.iter();
        let known = known.map(|(authid, k)| (authid, (&k.credential, &k.role)));
        f.debug_map().entries(known).finish()
    }
}

impl fmt::Display for CredentialError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kdf(e) => e.fmt(f),
            Self::Function { found } => write!(
                f,
                "kdf: expected \"argon2id-13\" or \"pbkdf2\", found {found:?}"
            ),
            Self::Salt => write!(
                f,
                "salt: expected 1 to {} bytes in hexadecimal digits",
                Credential::SALT_BYTES_MAX
            ),
            Self::Key { name } => write!(f, "{name}: expected 64 hexadecimal digits"),
        }
    }
}

impl std::error::Error for CredentialError {}
