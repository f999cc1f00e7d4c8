//! Signatures and keys computed by other implementations.

use crosstie_auth::wamp::{Key, Salted, Secret, Users};

/// The specification's.
const CHALLENGE: &str = r#"{"authid": "peter", "authrole": "user", "authmethod": "wampcra", "authprovider": "static", "session": 3251278072152162, "nonce": "LHRTC9zeOIrt_9U3", "timestamp": "2014-06-22T16:36:25.448Z"}"#;

#[test]
fn signatures() {
    for (key, expected) in [
        ("secret1", "JOQqv52DbVoN33KHjV2z1uYoFG/pwrPC4HXoJaNbOfg="),
        (
            "LG5/FwnS5WvgmlEyLPk/pQ==",
            "wtqIFvArT1FjhGPuijl6hJbZnoNdtlK2mLgnVyR3K48=",
        ),
    ] {
        assert_eq!(Key::new(key).sign(CHALLENGE), expected, "{key}");
    }
}

/// Each row: a password, its salt, iterations and bytes, and the key, which `Secret` accepts in its place.
#[test]
fn derived_keys() {
    for (password, salt, iterations, key_bytes, expected) in [
        ("secret2", "salt123", 100, 16, "LG5/FwnS5WvgmlEyLPk/pQ=="),
        (
            "L3L1YUE8Txlw",
            "salt123",
            1_000,
            32,
            "qzcdsr9uu/L5hnss3kjNTRe490ETgA70ZBaB5rvnJ5Y=",
        ),
    ] {
        let salted = Salted {
            salt: salt.into(),
            iterations,
            key_bytes,
        };
        assert_eq!(salted.derive(password), Key::new(expected), "{password}");
        // Either may be in the file.
        for secret in [password, expected] {
            let secret = Secret::underived(secret, Some(salted.clone())).expect("in bounds");
            let mut users = Users::default();
            users.insert("joe", secret, None);
            assert_eq!(users.is_right("joe", password), Some(true));
            assert_eq!(users.is_right("joe", "other"), Some(false));
            assert_eq!(users.is_right("zed", password), None);
        }
    }
}

#[test]
fn bounds_of_a_secret() {
    for (iterations, key_bytes, expected) in [
        (1, 1, ""),
        (1_000, 64, ""),
        (0, 32, "iterations: expected 1 to 1000000"),
        (1_000_001, 32, "iterations: expected 1 to 1000000"),
        (1, 0, "keylen: expected 1 to 64"),
        (1, 65, "keylen: expected 1 to 64"),
    ] {
        let salt = "salt123".into();
        let salted = Salted {
            salt,
            iterations,
            key_bytes,
        };
        let made = Secret::new("secret", Some(salted));
        let found = made.map_or_else(|e| e.to_string(), |_| String::new());
        assert_eq!(found, expected, "{iterations} {key_bytes}");
    }
}

#[test]
fn nothing_secret_is_printed() {
    let salted = Salted {
        salt: "pepper".into(),
        iterations: 2,
        key_bytes: 32,
    };
    let secret = Secret::new("hunter2", Some(salted)).expect("is within bounds");
    let mut users = Users::default();
    users.insert("joe", secret, Some("user"));
    let mut tickets = crosstie_auth::wamp::Tickets::default();
    tickets.insert("joe", "hunter2", None);
    let shown = format!("{users:?} {tickets:?} {:?}", Key::new("hunter2"));
    let expected = r#"{"joe": (Secret(…, 2 iterations), Some("user"))} {"joe": None} Key(…)"#;
    assert_eq!(shown, expected);
}
