//! Tokens, made with Python's `cryptography`, in `tokens.txt`. Its first line is the set of keys; each case after it is
//! a name, a token, and the outcome at 2014-06-22T16:36:25Z.

use std::sync::Arc;
use std::time::Duration;

use crosstie_auth::wamp::jwt::{Algorithm, Jwks, KeysUrl, Rules};
use crosstie_auth::wamp::{Jwt, Methods};

use crate::script::check;

const TOKENS: &str = include_str!("tokens.txt");

fn methods(algorithms: &[Algorithm]) -> Methods {
    let keys = Jwks::parse(TOKENS.lines().next().expect("the keys")).expect("are keys");
    Methods {
        jwt: Some(Jwt {
            keys: keys.into(),
            rules: Rules {
                algorithms: algorithms.to_vec(),
                issuer: Some("https://issuer".into()),
                audience: Some("crosstie".into()),
                authid_claim: "sub".into(),
                role_claim: "role".into(),
                default_role: Some("member".into()),
                clock_skew_s: 60,
            }
            .into(),
            url: None,
        }),
        ..Methods::default()
    }
}

#[test]
fn tokens() {
    let methods = methods(&Algorithm::ALL);
    let cases: Vec<_> = TOKENS.split("\n# ").skip(1).collect();
    assert!(cases.len() > 40, "{}", cases.len());
    for case in cases {
        let [_, token, outcome] = case.trim_end().lines().collect::<Vec<_>>()[..] else {
            panic!("{case}");
        };
        let hello = "> hello methods=jwt\n< challenge jwt {}";
        check(
            &methods,
            &format!("{hello}\n> authenticate {token}\n< {outcome}"),
        );
    }
}

/// HELLO with another authid, and algorithms that are not accepted.
#[test]
fn valid_tokens_that_do_not_suffice() {
    let token = TOKENS.split("\n# EdDSA\n").nth(1).expect("a token");
    let token = token.lines().next().expect("a token");
    let refused = "refuse wamp.error.not_authorized";
    let words = "the authid or its credentials are not valid";
    check(
        &methods(&Algorithm::ALL),
        &format!(
            "> hello methods=jwt authid=joe
             < challenge jwt {{}}
             > authenticate {token}
             < accept realm1 joe user jwt static {{}}
             > authenticate {token}
             < not due
             > hello methods=jwt authid=ann
             < challenge jwt {{}}
             > authenticate {token}
             < {refused} (wrong_claims): {words}
             > hello methods=jwt
             < challenge jwt {{}}
             > authenticate {}
             < {refused} (malformed_token): {words}",
            "A".repeat(20_000),
        ),
    );
    check(
        &methods(&[Algorithm::Es256]),
        &format!(
            "> hello methods=jwt
             < challenge jwt {{}}
             > authenticate {token}
             < {refused} (malformed_token): {words}"
        ),
    );
}

/// An issuer that publishes its keys at a URL: an unknown key triggers one fetch.
#[test]
fn unknown_keys_trigger_one_fetch() {
    let all = TOKENS.lines().next().expect("the keys");
    let other = r#"{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"other","x":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}]}"#;
    let mut methods = methods(&Algorithm::ALL);
    let url = KeysUrl {
        url: "https://issuer/keys".into(),
        ca_certificates: Vec::new(),
        refresh: Duration::ZERO..=Duration::ZERO,
        timeout: Duration::ZERO,
        bytes_max: 0,
    };
    let jwt = methods.jwt.as_mut().expect("is there");
    jwt.keys = Arc::default();
    jwt.url = Some(Arc::new(url));
    let token = TOKENS.split("\n# EdDSA\n").nth(1).expect("a token");
    let token = token.lines().next().expect("a token");
    let refused = "refuse wamp.error.not_authorized";
    let words = "the authid or its credentials are not valid";
    check(
        &methods,
        &format!(
            "> hello methods=jwt
             < challenge jwt {{}}
             > authenticate {token}
             < fetch
             > keys {all}
             < accept realm1 joe user jwt static {{}}
             > hello methods=jwt
             < challenge jwt {{}}
             > authenticate {token}
             < fetch
             > authenticate {token}
             < not due
             > keys {other}
             < {refused} (unknown_key): {words}
             > keys {all}
             < refuse wamp.error.authentication_failed (authenticator_failed): unexpected keys
             > hello methods=jwt
             < challenge jwt {{}}
             > authenticate a.b.c
             < {refused} (malformed_token): {words}"
        ),
    );
}

#[test]
fn malformed_key_sets() {
    let rsa = r#"{"kty":"RSA","n":"AQ","e":"AQAB"}"#;
    let many = format!(r#"{{"keys":[{}]}}"#, [rsa; 257].join(","));
    for (text, expected) in [
        ("", "expected JSON"),
        ("[]", "expected an object with a list \"keys\""),
        (r#"{"keys":{}}"#, "expected an object with a list \"keys\""),
        (r#"{"keys":[5]}"#, "key 1: \"kty\" is missing or malformed"),
        (
            r#"{"keys":[{"kty":"RSA","n":"AQ"}]}"#,
            "key 1: \"e\" is missing or malformed",
        ),
        (
            r#"{"keys":[{"kty":"EC","crv":"P-256","x":"AQ","y":"AQ"}]}"#,
            "key 1: \"x\" is missing or malformed",
        ),
        (
            r#"{"keys":[{"kty":"OKP","crv":"Ed25519","x":"?"}]}"#,
            "key 1: \"x\" is missing or malformed",
        ),
        (
            r#"{"keys":[{"kty":"oct","k":"AQ"}]}"#,
            "none of its keys can be used: expected RSA, EC with P-256 or P-384, or OKP with Ed25519, for signatures",
        ),
        (&many, "expected at most 256 keys"),
    ] {
        let found = Jwks::parse(text).map_or_else(|e| e.to_string(), |_| String::new());
        assert_eq!(found, expected, "{text}");
    }
}
