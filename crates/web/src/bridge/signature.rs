//! What a request is signed with.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// What is signed, in order.
pub(super) type Parts<'p> = [&'p [u8]; 5];

/// Whether `signature` is that of the parts; what identifies it then.
pub(super) fn verify(secret: &[u8], parts: Parts<'_>, signature: &[u8]) -> Option<[u8; 32]> {
    // A key of any length will do.
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).ok()?;
    for part in parts {
        mac.update(part);
    }
    let given = URL_SAFE.decode(signature).ok()?;
    let given: [u8; 32] = given.try_into().ok()?;
    // In a time that says nothing of the difference.
    mac.verify_slice(&given).ok()?;
    Some(given)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: &[u8] = br#"{"procedure":"com.add","args":[1,2]}"#;
    const PARTS: Parts<'static> = [b"myapp", b"2011-10-14T16:59:51.123Z", b"1", b"12345", BODY];

    #[test]
    fn one_vector_and_what_it_is_not() {
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
            // Not the alphabet of URLs; not whole; bits that no signature has.
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
