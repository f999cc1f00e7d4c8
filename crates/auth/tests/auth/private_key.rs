//! Private keys that TLS cannot use, and the errors that name the reason.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use crosstie_auth::private_key::{unusable_curve, why_unusable};

fn pem(label: &str, der: &[u8]) -> String {
    let content = STANDARD.encode(der);
    format!("-----BEGIN {label}-----\n{content}\n-----END {label}-----\n")
}

/// Each row: a PEM file, and a part of the error.
#[test]
fn errors_name_the_reason() {
    const P521: &[u8] = b"\x30\x10\x06\x07\x2a\x86\x48\xce\x3d\x02\x01\x06\x05\x2b\x81\x04\x00\x23";
    const P256: &[u8] =
        b"\x30\x13\x06\x07\x2a\x86\x48\xce\x3d\x02\x01\x06\x08\x2a\x86\x48\xce\x3d\x03\x01\x07";
    const ED448: &[u8] = b"\x02\x01\x00\x30\x05\x06\x03\x2b\x65\x71\x04";
    const RSA: &[u8] = b"\x30\x0d\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x01\x01\x05\x00";
    let rsa = |bytes: usize| [RSA, &vec![1; bytes]].concat();
    let headed = "-----BEGIN EC PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nAAAA\n-----END EC PRIVATE KEY-----";
    for (file, expected) in [
        (pem("PRIVATE KEY", P521), Some("P-521 (secp521r1)")),
        (pem("EC PRIVATE KEY", P521), Some("P-521 (secp521r1)")),
        (pem("PRIVATE KEY", ED448), Some("Ed448")),
        (pem("PRIVATE KEY", &rsa(600)), Some("fewer than 2048")),
        (pem("PRIVATE KEY", &rsa(4_700)), Some("more than 4096")),
        (pem("RSA PRIVATE KEY", &[1; 600]), Some("fewer than 2048")),
        (pem("DSA PRIVATE KEY", &[1; 600]), Some("DSA")),
        (pem("ENCRYPTED PRIVATE KEY", P256), Some("is encrypted")),
        (headed.to_owned(), Some("is encrypted")),
        (pem("OPENSSH PRIVATE KEY", P256), Some("OpenSSH's form")),
        (pem("CERTIFICATE", P256), Some("found \"CERTIFICATE\"")),
        // These are usable, or have no known fault.
        (pem("PRIVATE KEY", P256), None),
        (
            pem("EC PARAMETERS", P256) + &pem("EC PRIVATE KEY", P256),
            None,
        ),
        (pem("PRIVATE KEY", &rsa(1_191)), None),
        (pem("PRIVATE KEY", &rsa(2_348)), None),
        ("-----BEGIN PRIVATE KEY-----\n?".to_owned(), None),
        (String::new(), None),
        ("-----BEGIN ".to_owned(), None),
    ] {
        let found = why_unusable(file.as_bytes());
        match expected {
            None => assert_eq!(found, None, "{file}"),
            Some(part) => {
                let found = found.expect(&file);
                assert!(found.contains(part), "{found}: {file}");
            }
        }
    }
    assert_eq!(unusable_curve(P521), Some("ECDSA on P-521 (secp521r1)"));
    assert_eq!(unusable_curve(P256), None);
}
