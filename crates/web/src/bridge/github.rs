//! GitHub's signatures of webhook requests.

use hmac::digest::Update;
use hmac::{Hmac, KeyInit, Mac};
use http::HeaderMap;
use sha1::Sha1;
use sha2::Sha256;

/// Whether the body is signed with that secret: by SHA-256, by SHA-1, or both. Crossbar.io reads only SHA-1, which
/// newer senders omit. Every present signature must be right.
pub(super) fn is_signed(headers: &HeaderMap, secret: &[u8], body: &[u8]) -> bool {
    let given = |name: &str| headers.get(name).map(|value| value.as_bytes());
    let (sha1, sha256) = (given("x-hub-signature"), given("x-hub-signature-256"));
    let is_sha256 = |signature: &[u8]| {
        digest(signature, b"sha256=")
            .is_some_and(|digest| verify::<Hmac<Sha256>>(secret, body, &digest))
    };
    let is_sha1 = |signature: &[u8]| {
        digest(signature, b"sha1=")
            .is_some_and(|digest| verify::<Hmac<Sha1>>(secret, body, &digest))
    };
    (sha1.is_some() || sha256.is_some()) && sha1.is_none_or(is_sha1) && sha256.is_none_or(is_sha256)
}

fn verify<M: KeyInit + Mac + Update>(secret: &[u8], body: &[u8], digest: &[u8]) -> bool {
    let Ok(mut mac) = M::new_from_slice(secret) else {
        return false;
    };
    Mac::update(&mut mac, body);
    // In constant time.
    mac.verify_slice(digest).is_ok()
}

/// The bytes of a signature in hexadecimal digits, behind its name; both are case-insensitive.
fn digest(signature: &[u8], name: &[u8]) -> Option<Vec<u8>> {
    let (given, digits) = signature.split_at_checked(name.len())?;
    if !given.eq_ignore_ascii_case(name) || digits.len() % 2 != 0 || digits.len() > 64 {
        return None;
    }
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let pairs = digits.chunks_exact(2);
    // Two digits are at most 255.
    let bytes = pairs.map(|pair| Some((digit(pair[0])? * 16 + digit(pair[1])?) as u8));
    bytes.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    // Computed with Python's hmac: secret `gh`, body `{}`.
    const SHA1: &str = "sha1=e8748db5d8271ef0d704f16520af931119cfc5e5";

    const SHA256: &str = "sha256=0e8e5b7e2d67528ae48fabb2d591922bb1dc6d5bcf82340547cbc59af1938451";

    #[test]
    fn signatures() {
        let wrong = "sha256=f1b5be0e6b1ef26d54ce6b6f0d2d6a5f";
        for (sha1, other, body, expected) in [
            (Some(SHA1), None, "{}", true),
            (Some(&*SHA1.to_uppercase()), None, "{}", true),
            (Some(SHA1), None, "{ }", false),
            (Some("sha1="), None, "{}", false),
            (Some(&SHA1[..SHA1.len() - 2]), None, "{}", false),
            (Some(&SHA1[5..]), None, "{}", false),
            (Some("sha1=zz"), None, "{}", false),
            (Some(""), None, "{}", false),
            (None, None, "{}", false),
            (Some(SHA1), Some(SHA256), "{}", true),
            (Some(SHA1), Some(wrong), "{}", false),
            (None, Some(SHA256), "{}", true),
            (None, Some(SHA256), "{ }", false),
            (None, Some(wrong), "{}", false),
            (Some(""), Some(SHA256), "{}", false),
        ] {
            let mut headers = HeaderMap::new();
            for (name, value) in [("x-hub-signature", sha1), ("x-hub-signature-256", other)] {
                if let Some(value) = value {
                    headers.insert(name, value.parse().expect("a header"));
                }
            }
            let is_signed = is_signed(&headers, b"gh", body.as_bytes());
            assert_eq!(is_signed, expected, "{sha1:?} {other:?} {body}");
        }
    }
}
