//! The signature of a request.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// The signed parts, in order.
pub(super) type Parts<'p> = [&'p [u8]; 5];

/// Verifies `signature` over the parts. Returns its bytes.
pub(super) fn verify(secret: &[u8], parts: Parts<'_>, signature: &[u8]) -> Option<[u8; 32]> {
    // Any length of key is valid.
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).ok()?;
    for part in parts {
        mac.update(part);
    }
    let given = URL_SAFE.decode(signature).ok()?;
    let given: [u8; 32] = given.try_into().ok()?;
    // In constant time.
    mac.verify_slice(&given).ok()?;
    Some(given)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: &[u8] = br#"{"procedure":"com.add","args":[1,2]}"#;
    const PARTS: Parts<'static> = [b"myapp", b"2011-10-14T16:59:51.123Z", b"1", b"12345", BODY];

    #[test]
    fn one_vector_verifies_and_its_variants_fail() {
        for (secret, signature, expected) in [
            (
                "s3cret",
                "8eQMPzYFQaBXzah_o3CTLFkCJLu5AtWXTcTXvsr-uwY=",
                true,
            ),
            (
                "secret",
                "8eQMPzYFQaBXzah_o3CTLFkCJLu5AtWXTcTXvsr-uwY=",
                false,
            ),
            // The wrong alphabet; truncated; non-canonical bits.
            (
                "s3cret",
                "8eQMPzYFQaBXzah/o3CTLFkCJLu5AtWXTcTXvsr+uwY=",
                false,
            ),
            (
                "s3cret",
                "8eQMPzYFQaBXzah_o3CTLFkCJLu5AtWXTcTXvsr-uwY",
                false,
            ),
            (
                "s3cret",
                "8eQMPzYFQaBXzah_o3CTLFkCJLu5AtWXTcTXvsr-uwZ=",
                false,
            ),
            ("s3cret", "8eQMPzYFQaBXzah_o3CT", false),
            ("s3cret", "", false),
            ("", "8eQMPzYFQaBXzah_o3CTLFkCJLu5AtWXTcTXvsr-uwY=", false),
        ] {
            let verified = verify(secret.as_bytes(), PARTS, signature.as_bytes());
            assert_eq!(verified.is_some(), expected, "{secret} {signature}");
        }
    }
}
