//! The time and the random bytes of a handshake, and the values derived from them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chrono::{DateTime, SecondsFormat};

/// Time and randomness of one handshake. The random bytes must be unpredictable.
#[derive(Clone, Copy)]
pub struct Given {
    /// Milliseconds since 1970.
    pub unix_ms: u64,
    pub chance: [u8; Self::CHANCE_BYTES],
}

impl Given {
    pub const CHANCE_BYTES: usize = AUTHID_BYTES + NONCE_BYTES + SESSION_BYTES;

    /// A unique authid: 20 characters of an alphabet that is easy to read aloud.
    pub fn authid(&self) -> String {
        const ALPHABET: &[u8; 32] = b"346789ABCDEFGHJKLMNPQRSTUVWXYabc";
        let chance = self.chance[..AUTHID_BYTES].iter();
        chance
            .map(|byte| char::from(ALPHABET[usize::from(byte % 32)]))
            .collect()
    }

    /// 64 characters, as in Crossbar.io.
    pub(super) fn nonce(&self) -> String {
        STANDARD.encode(&self.chance[AUTHID_BYTES..AUTHID_BYTES + NONCE_BYTES])
    }

    /// The router's part of the SCRAM nonce.
    pub(super) fn scram_nonce(&self) -> [u8; 16] {
        let mut nonce = [0; 16];
        nonce.copy_from_slice(&self.chance[AUTHID_BYTES..AUTHID_BYTES + 16]);
        nonce
    }

    /// The challenge that a WAMP-cryptosign client signs.
    pub(super) fn challenge(&self) -> [u8; CHALLENGE_BYTES] {
        let mut challenge = [0; CHALLENGE_BYTES];
        challenge.copy_from_slice(&self.chance[AUTHID_BYTES..AUTHID_BYTES + CHALLENGE_BYTES]);
        challenge
    }

    /// The session's id: in WAMP's global scope, 1 to 2^53.
    pub fn session(&self) -> u64 {
        let mut bytes = [0; 8];
        bytes[1..].copy_from_slice(&self.chance[AUTHID_BYTES + NONCE_BYTES..]);
        u64::from_be_bytes(bytes) % (1 << 53) + 1
    }

    pub(super) fn timestamp(&self) -> String {
        rfc3339(self.unix_ms)
    }
}

/// Formats a time in milliseconds since 1970 by RFC 3339.
pub fn rfc3339(unix_ms: u64) -> String {
    let ms = i64::try_from(unix_ms).unwrap_or(i64::MAX);
    let time = DateTime::from_timestamp_millis(ms).unwrap_or_default();
    time.to_rfc3339_opts(SecondsFormat::Millis, true)
}

const AUTHID_BYTES: usize = 20;
const NONCE_BYTES: usize = 48;
/// A handshake needs one of the two.
const CHALLENGE_BYTES: usize = 32;
const SESSION_BYTES: usize = 7;
