//! HMAC with SHA-256, which several methods use.

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

pub(super) fn hmac(key: &[u8], text: &[u8]) -> [u8; 32] {
    // HMAC accepts keys of any length (RFC 2104, section 2), so the error cannot occur. The key of zeros that it
    // would give matches no signature.
    let mac = Hmac::<Sha256>::new_from_slice(key);
    let mac = mac.map(|mac| mac.chain_update(text).finalize().into_bytes());
    mac.map_or([0; 32], Into::into)
}

/// An optional part of a credential.
pub(super) fn optional(text: Option<&str>) -> Vec<u8> {
    text.map(|text| [b"+", text.as_bytes()].concat())
        .unwrap_or_default()
}
