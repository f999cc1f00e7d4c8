//! Password hashes made by RabbitMQ 3.10.8.

use crosstie_auth::{PasswordHash, PasswordHashError};

const MD5: &str = "rabbit_password_hashing_md5";
const SHA256: &str = "rabbit_password_hashing_sha256";
const SHA512: &str = "rabbit_password_hashing_sha512";

const HASHES: [(&str, &str); 3] = [
    (MD5, "m6qodcsJoj0HRMz/7OfhD2U0x3M="),
    (SHA256, "afc305QopxBAMtnzdhDZQ3xRMRe3eulhdIWfzrJCClSEZWqH"),
    (
        SHA512,
        "vjBFpqXVlmq/TL8k/UMhdVps0ZiV7yHUZO6HJmhFZahKefYmka3TDvEO/OoSbeM0VhSYEZqvYwzyVHggoJZOLTUiBU0=",
    ),
];

#[test]
fn passwords_are_verified() {
    for (algorithm, text) in HASHES {
        let hash = PasswordHash::parse(text, Some(algorithm)).expect(algorithm);
        assert!(hash.verify("geheim ü".as_bytes()), "{algorithm}");
        for wrong in ["", "geheim", "geheim u", "geheim ü "] {
            assert!(!hash.verify(wrong.as_bytes()), "{algorithm} {wrong:?}");
        }
        assert_eq!(hash.algorithm(), algorithm);
        assert_eq!(hash.to_text(), text);
    }
}

#[test]
fn an_algorithm_not_named_is_sha256() {
    let hash = PasswordHash::parse(HASHES[1].1, None).expect("a hash");
    assert!(hash.verify("geheim ü".as_bytes()));
}

#[test]
fn a_hash_made_here() {
    let hash = PasswordHash::of(b"secret", [1, 2, 3, 4]);
    assert!(hash.verify(b"secret"));
    assert!(!hash.verify(b"Secret"));
    let again = PasswordHash::parse(&hash.to_text(), Some(hash.algorithm()));
    assert_eq!(again, Ok(hash.clone()));
    assert_ne!(hash, PasswordHash::of(b"secret", [1, 2, 3, 5]));
    assert_eq!(
        format!("{hash:?}"),
        "PasswordHash(rabbit_password_hashing_sha256, …)"
    );
}

#[test]
fn malformed_hashes() {
    #[rustfmt::skip]
    let rows = [
        ("!", None, PasswordHashError::Base64),
        ("", None, PasswordHashError::Length { bytes: 0, expected: 36, algorithm: SHA256 }),
        (HASHES[0].1, Some(SHA512), PasswordHashError::Length { bytes: 20, expected: 68, algorithm: SHA512 }),
        (HASHES[0].1, Some("scrypt"), PasswordHashError::Algorithm { found: "scrypt".to_owned() }),
    ];
    for (text, algorithm, error) in rows {
        assert_eq!(PasswordHash::parse(text, algorithm), Err(error));
    }
    let error = PasswordHash::parse("", Some("scrypt")).expect_err("no algorithm");
    assert_eq!(
        error.to_string(),
        "unknown hashing algorithm \"scrypt\", expected rabbit_password_hashing_md5, \
         rabbit_password_hashing_sha256, rabbit_password_hashing_sha512"
    );
}
