//! The keys of RFC 5802, section 3.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};
use subtle::{Choice, ConstantTimeEq as _};

use super::AuthMessage;
use crate::wamp::mac::hmac;

/// The salted password, which a client derives.
#[derive(Clone, PartialEq, Eq)]
pub struct SaltedPassword(Vec<u8>);

/// A router's keys of a principal: enough to verify a proof and to make the router's, too little to make the client's.
#[derive(Clone, PartialEq, Eq)]
pub struct Keys {
    pub stored: [u8; 32],
    pub server: [u8; 32],
}

impl SaltedPassword {
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        Self(bytes.into())
    }

    pub fn keys(&self) -> Keys {
        Keys {
            stored: Sha256::digest(self.client_key()).into(),
            server: hmac(&self.0, b"Server Key"),
        }
    }

    /// A client's proof, in Base64.
    pub fn prove(&self, message: &AuthMessage<'_>) -> String {
        let signature = hmac(&self.keys().stored, message.to_string().as_bytes());
        STANDARD.encode(xor(self.client_key(), signature))
    }

    fn client_key(&self) -> [u8; 32] {
        hmac(&self.0, b"Client Key")
    }
}

impl Keys {
    /// Whether `proof` is the principal's proof of `message`.
    pub(super) fn verify(&self, message: &str, proof: &[u8; 32]) -> Choice {
        let signature = hmac(&self.stored, message.as_bytes());
        let found: [u8; 32] = Sha256::digest(xor(*proof, signature)).into();
        found.ct_eq(&self.stored)
    }

    /// The router's proof, in Base64.
    pub fn verifier(&self, message: &str) -> String {
        STANDARD.encode(hmac(&self.server, message.as_bytes()))
    }
}

fn xor(mut bytes: [u8; 32], with: [u8; 32]) -> [u8; 32] {
    let pairs = bytes.iter_mut().zip(with);
    pairs.for_each(|(byte, with)| *byte ^= with);
    bytes
}

/// Omits the bytes.
impl fmt::Debug for SaltedPassword {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SaltedPassword(…)")
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Keys(…)")
    }
}
