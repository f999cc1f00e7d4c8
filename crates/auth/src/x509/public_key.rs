//! Public keys in PEM, as the members of a JSON Web Key (RFC 7518, section 6; RFC 8037).

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};

use super::der::{BIT_STRING, INTEGER, OBJECT_IDENTIFIER, Reader, SEQUENCE};

/// The name of a member, and its value.
pub type Member = (&'static str, String);

/// Identifiers of algorithms and curves.
const RSA: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x01";
const EC: &[u8] = b"\x2a\x86\x48\xce\x3d\x02\x01";
const P256: &[u8] = b"\x2a\x86\x48\xce\x3d\x03\x01\x07";
const P384: &[u8] = b"\x2b\x81\x04\x00\x22";
const ED25519: &[u8] = b"\x2b\x65\x70";

/// The members of the first public key in a PEM file. `None`: there is none of a kind that signs tokens.
pub fn members_of_pem(pem: &str) -> Option<Vec<Member>> {
    let (_, rest) = pem.split_once("-----BEGIN ")?;
    let (label, rest) = rest.split_once("-----")?;
    let (lines, _) = rest.split_once("-----END")?;
    let lines: String = lines.split_whitespace().collect();
    let der = STANDARD.decode(lines).ok()?;
    match label {
        "PUBLIC KEY" => of_key(&der),
        "RSA PUBLIC KEY" => of_rsa(&der),
        _ => None,
    }
}

/// A key with its algorithm (RFC 5280, section 4.1.2.7).
fn of_key(der: &[u8]) -> Option<Vec<Member>> {
    let mut key = Reader::new(der).inside(SEQUENCE)?;
    let mut algorithm = key.inside(SEQUENCE)?;
    let (unused, content) = key.expect(BIT_STRING)?.split_first()?;
    key.end()?;
    match algorithm.expect(OBJECT_IDENTIFIER)? {
        _ if *unused != 0 => None,
        RSA => of_rsa(content),
        EC => match algorithm.expect(OBJECT_IDENTIFIER)? {
            P256 => of_point("P-256", 32, content),
            P384 => of_point("P-384", 48, content),
            _ => None,
        },
        ED25519 if content.len() == 32 => Some(vec![
            member("kty", "OKP"),
            member("crv", "Ed25519"),
            ("x", encoded(content)),
        ]),
        _ => None,
    }
}

fn of_rsa(der: &[u8]) -> Option<Vec<Member>> {
    let mut key = Reader::new(der).inside(SEQUENCE)?;
    let (n, e) = (key.expect(INTEGER)?, key.expect(INTEGER)?);
    let number = |octets: &[u8]| encoded(octets.strip_prefix(&[0]).unwrap_or(octets));
    Some(vec![
        member("kty", "RSA"),
        ("n", number(n)),
        ("e", number(e)),
    ])
}

/// A point that is not compressed.
fn of_point(curve: &str, bytes: usize, content: &[u8]) -> Option<Vec<Member>> {
    let (4, point) = content.split_first()? else {
        return None;
    };
    let (x, y) = point.split_at_checked(bytes)?;
    (y.len() == bytes).then(|| {
        vec![
            member("kty", "EC"),
            member("crv", curve),
            ("x", encoded(x)),
            ("y", encoded(y)),
        ]
    })
}

fn member(name: &'static str, value: &str) -> Member {
    (name, value.to_owned())
}

fn encoded(octets: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(octets)
}
