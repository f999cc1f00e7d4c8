//! Ed25519 (RFC 8032): the keys of principals, and the router's own.

use std::fmt;
use std::hint::black_box;
use std::sync::OnceLock;

use ed25519_dalek::{self as dalek, Signature, Signer as _, Verifier as _, VerifyingKey};

use crate::wamp::hexadecimal;
use crate::wamp::mac::hmac;

/// A key that signatures are checked with.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct PublicKey(pub(super) [u8; Self::BYTES]);

/// The point of a key that somebody has logged in with. To find it takes a tenth of checking a signature.
#[derive(Clone, Default)]
pub(super) struct Parsed(OnceLock<Box<VerifyingKey>>);

/// A key that signs.
pub struct SigningKey {
    key: dalek::SigningKey,
    /// What stands in for principals that are not known follows from it.
    decoys: [u8; 32],
}

/// Why a text is nobody's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PublicKeyError {
    NotHexadecimal,
    SmallOrder,
}

pub(super) const SIGNATURE_BYTES: usize = 64;

impl PublicKey {
    pub const BYTES: usize = 32;

    /// Reads 64 hexadecimal digits.
    pub fn parse(text: &str) -> Result<Self, PublicKeyError> {
        let bytes = hexadecimal::decode(text).ok_or(PublicKeyError::NotHexadecimal)?;
        let mut unsigned: [u8; Self::BYTES] = bytes;
        unsigned[Self::BYTES - 1] &= 0x7f;
        match SMALL_ORDER.contains(&unsigned) {
            true => Err(PublicKeyError::SmallOrder),
            false => Ok(Self(bytes)),
        }
    }

    /// Whether that is a signature; `known` is where the point of a principal's key is kept.
    ///
    /// Whoever is refused has had a key parsed, so that it takes the same time whether somebody has the key: a point
    /// is kept by who signs with it, and where a kept one brings a refusal the key is parsed for nothing.
    pub(super) fn verify(
        &self,
        known: Option<&Parsed>,
        message: &[u8],
        signature: &[u8; SIGNATURE_BYTES],
    ) -> bool {
        let signature = Signature::from_bytes(signature);
        let is_right = |key: &VerifyingKey| key.verify(message, &signature).is_ok();
        if let Some(key) = known.and_then(|known| known.0.get()) {
            let is_right = is_right(key);
            if !is_right {
                let _ = black_box(VerifyingKey::from_bytes(black_box(&self.0)));
            }
            return is_right;
        }
        let Ok(key) = VerifyingKey::from_bytes(&self.0) else {
            return false;
        };
        let is_right = is_right(&key);
        if let Some(known) = known.filter(|_| is_right) {
            known.0.get_or_init(|| Box::new(key));
        }
        is_right
    }
}

impl SigningKey {
    /// The key that follows from 32 bytes.
    pub fn from_seed(seed: &[u8; 32]) -> Self {
        Self {
            key: dalek::SigningKey::from_bytes(seed),
            decoys: hmac(seed, b"principals that are not known"),
        }
    }

    /// Reads the 32 bytes from 64 hexadecimal digits.
    pub fn parse(text: &str) -> Option<Self> {
        Some(Self::from_seed(&hexadecimal::decode(text)?))
    }

    /// The same of a message in hexadecimal digits; `None` if that is none of 32 bytes.
    pub fn sign_hexadecimal(&self, message: &str) -> Option<String> {
        Some(self.sign(&hexadecimal::decode(message)?))
    }

    /// 64 hexadecimal digits.
    pub fn public_hexadecimal(&self) -> String {
        hexadecimal::encode(self.key.verifying_key().as_bytes())
    }

    pub(in crate::wamp) fn decoys(&self) -> &[u8; 32] {
        &self.decoys
    }

    /// A signature and what it is of, as WAMP-cryptosign has them everywhere: 192 hexadecimal digits.
    pub fn sign(&self, message: &[u8; 32]) -> String {
        let signature = self.key.sign(message);
        hexadecimal::encode(&signature.to_bytes()) + &hexadecimal::encode(message)
    }
}

/// The points whose order divides 8, without their signs, also where they are not written in the shortest way. To
/// such a "key" a signature can be made by anybody: what is added to a signature for it is one of eight points
/// whatever the message.
const SMALL_ORDER: [[u8; 32]; 7] = [
    of_order(0x00, 0x00, 0x00),
    of_order(0x01, 0x00, 0x00),
    [
        0x26, 0xe8, 0x95, 0x8f, 0xc2, 0xb2, 0x27, 0xb0, 0x45, 0xc3, 0xf4, 0x89, 0xf2, 0xef, 0x98,
        0xf0, 0xd5, 0xdf, 0xac, 0x05, 0xd3, 0xc6, 0x33, 0x39, 0xb1, 0x38, 0x02, 0x88, 0x6d, 0x53,
        0xfc, 0x05,
    ],
    [
        0xc7, 0x17, 0x6a, 0x70, 0x3d, 0x4d, 0xd8, 0x4f, 0xba, 0x3c, 0x0b, 0x76, 0x0d, 0x10, 0x67,
        0x0f, 0x2a, 0x20, 0x53, 0xfa, 0x2c, 0x39, 0xcc, 0xc6, 0x4e, 0xc7, 0xfd, 0x77, 0x92, 0xac,
        0x03, 0x7a,
    ],
    of_order(0xec, 0xff, 0x7f),
    of_order(0xed, 0xff, 0x7f),
    of_order(0xee, 0xff, 0x7f),
];

/// A number by its lowest byte, those between, and its highest.
const fn of_order(first: u8, between: u8, last: u8) -> [u8; 32] {
    let mut bytes = [between; 32];
    bytes[0] = first;
    bytes[31] = last;
    bytes
}

/// What it is of says all.
impl fmt::Debug for Parsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Parsed")
    }
}

/// Principals are the same whoever has logged in.
impl PartialEq for Parsed {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({})", hexadecimal::encode(&self.0))
    }
}

/// Without the half that signs.
impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningKey(of {})", self.public_hexadecimal())
    }
}

impl fmt::Display for PublicKeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotHexadecimal => "expected 64 hexadecimal digits",
            Self::SmallOrder => {
                "no key of anybody's: everybody can sign for it (a point of small order)"
            }
        })
    }
}

impl std::error::Error for PublicKeyError {}
