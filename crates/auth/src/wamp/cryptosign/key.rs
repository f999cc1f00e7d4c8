//! Ed25519 (RFC 8032): the keys of principals and of the router.

use std::fmt;
use std::hint::black_box;
use std::sync::OnceLock;

use ed25519_dalek::{self as dalek, Signature, Signer as _, Verifier as _, VerifyingKey};

use crate::wamp::hexadecimal;
use crate::wamp::mac::hmac;

/// A key that verifies signatures.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct PublicKey(pub(super) [u8; Self::BYTES]);

/// The decoded point of a key that has logged in. Decoding takes a tenth of verifying a signature.
#[derive(Clone, Default)]
pub(super) struct Parsed(OnceLock<Box<VerifyingKey>>);

/// A key that signs.
pub struct SigningKey {
    key: dalek::SigningKey,
    /// The seed of the decoys for unknown principals.
    decoys: [u8; 32],
}

/// The reason why a text is not a usable public key.
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

    /// Verifies a signature; `known` caches the decoded point of a principal's key.
    ///
    /// A refusal always has decoded a key, so that its duration does not reveal whether a principal has that key. The
    /// point is cached only after a valid signature; if a cached one leads to a refusal, the key is decoded once more
    /// for nothing.
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
    /// The key of a 32-byte seed.
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

    /// Signs a message given in hexadecimal digits; `None` unless it has 32 bytes.
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

    /// A signature and its message, in WAMP-cryptosign's form: 192 hexadecimal digits.
    pub fn sign(&self, message: &[u8; 32]) -> String {
        let signature = self.key.sign(message);
        hexadecimal::encode(&signature.to_bytes()) + &hexadecimal::encode(message)
    }
}

/// The points of small order (8 or less), without their signs, including non-canonical encodings. For such a "key" a
/// signature can be made without a secret: its contribution is one of eight points, whatever the message.
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

/// Omits the point, which follows from the key.
impl fmt::Debug for Parsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Parsed")
    }
}

/// Principals are equal whether or not they have logged in.
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

/// Omits the secret half.
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
                "not usable as a key: signatures for it need no secret (a point of small order)"
            }
        })
    }
}

impl std::error::Error for PublicKeyError {}
