//! Claims and scopes of tokens. `oauth2/cases.txt` has the cases; RabbitMQ's plugin of 3.10.8 decides on them alike, but
//! for those that say so.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crosstie_auth::Access;
use crosstie_auth::oauth2::{Flaw, Rules, Scope, ScopeError, Token};
use crosstie_auth::wamp::jwt::{Algorithm, Jwks};
use crosstie_wamp::codec::{self, Limits};
use crosstie_wamp::{Dict, Serializer, Value};

const CASES: &str = include_str!("oauth2/cases.txt");
const NOW_S: u64 = 1_000;

#[test]
fn cases() {
    let mut cases = 0;
    for case in CASES.split("\n# ").skip(1) {
        let mut token = None;
        let mut rules = Rules {
            resource_server_id: "rabbitmq".to_owned(),
            ..Rules::default()
        };
        for line in case.lines().skip(1).filter(|line| !line.is_empty()) {
            let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
            let found = match word {
                "rules" => {
                    rules = of_line(rest);
                    continue;
                }
                "claims" => {
                    token = Some(rules.content(&dict(rest), "sent", NOW_S));
                    continue;
                }
                "=" => shown(token.as_ref().expect("claims")),
                _ => {
                    let token = token.as_ref().expect("claims");
                    let token = token
                        .as_ref()
                        .unwrap_or_else(|flaw| panic!("{line}: {flaw}"));
                    judged(token, line)
                }
            };
            assert_eq!(found, line, "\n# {case}");
            cases += 1;
        }
    }
    assert!(cases > 80, "{cases}");
}

/// `id=NAME additional=CLAIM ALIAS=>SCOPE,SCOPE`
fn of_line(line: &str) -> Rules {
    let mut rules = Rules::default();
    for word in line.split(' ') {
        if let Some((alias, scopes)) = word.split_once("=>") {
            let scopes = scopes.split(',').map(str::to_owned).collect();
            rules.scope_aliases.insert(alias.to_owned(), scopes);
            continue;
        }
        match word.split_once('=').expect("a rule") {
            ("id", id) => id.clone_into(&mut rules.resource_server_id),
            ("additional", key) => rules.additional_scopes_key = Some(key.to_owned()),
            other => panic!("{other:?}"),
        }
    }
    rules
}

fn shown(token: &Result<Token, Flaw>) -> String {
    match token {
        Err(flaw) => format!("= refused: {flaw}"),
        Ok(token) => {
            let mut text = format!("= {}", token.user);
            for tag in &token.tags {
                write!(text, " {tag}").expect("a text");
            }
            if let Some(expires_s) = token.expires_s {
                write!(text, " until {expires_s}").expect("a text");
            }
            text
        }
    }
}

/// `open VHOST`, `ACCESS VHOST NAME`, or `ACCESS VHOST NAME KEY`; then `: yes` or `: no`. A space is `_`.
fn judged(token: &Token, line: &str) -> String {
    let (asked, _) = line.split_once(": ").expect("an answer");
    let words: Vec<_> = asked
        .split(' ')
        .map(|word| word.replace('_', " "))
        .collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let access = |name: &str| match name {
        "configure" => Access::Configure,
        "read" => Access::Read,
        "write" => Access::Write,
        other => panic!("{other}"),
    };
    let may = match words[..] {
        ["open", vhost] => token.grants(vhost).is_some(),
        [to, vhost, name] => token
            .grants(vhost)
            .is_some_and(|grants| grants.may(access(to), name)),
        [to, vhost, name, key] => token
            .grants(vhost)
            .is_some_and(|grants| grants.may_topic(access(to), name, key)),
        _ => panic!("{line}"),
    };
    format!("{asked}: {}", if may { "yes" } else { "no" })
}

fn dict(text: &str) -> Dict {
    let value = codec::decode_value(Serializer::Json, text.as_bytes(), &Limits::default());
    match value {
        Ok(Value::Dict(dict)) => dict,
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn scopes_of_another_meaning_have_a_reason() {
    for (text, expected) in [
        ("openid", ScopeError::Kind),
        ("delete:*/*", ScopeError::Kind),
        ("read:*", ScopeError::Parts),
        ("read:a/b/c/d", ScopeError::Parts),
    ] {
        assert_eq!(Scope::parse(text), Err(expected), "{text}");
    }
    assert!(Scope::parse("read:/").is_ok());
}

#[test]
fn a_token_ends_with_the_second_that_it_names() {
    let rules = Rules::default();
    let of = |claims: &str| rules.content(&dict(claims), "", NOW_S).expect("a token");
    let token = of(r#"{"sub": "joe", "aud": "", "scope": "", "exp": 1000.7}"#);
    assert!(!token.is_expired(999));
    assert!(token.is_expired(1_000));
    let token = of(r#"{"sub": "joe", "aud": "", "scope": ""}"#);
    assert!(!token.is_expired(u64::MAX));
}

/// Signatures are those of WAMP's tests.
#[test]
fn the_key_is_named_by_the_token_or_the_rules() {
    let tokens = include_str!("../wamp/tokens.txt");
    let keys = Jwks::parse(tokens.lines().next().expect("the keys")).expect("keys");
    let token = |name: &str| {
        let behind = tokens.split(&format!("\n# {name}\n")).nth(1);
        behind
            .and_then(|text| text.lines().next())
            .expect("a token")
    };
    let rules = |default_key: Option<&str>, algorithms: &[Algorithm]| Rules {
        algorithms: algorithms.to_vec(),
        default_key: default_key.map(str::to_owned),
        scope_aliases: BTreeMap::from([("none".to_owned(), Vec::new())]),
        ..Rules::default()
    };
    let all = &Algorithm::ALL;
    for (name, default_key, algorithms, expected) in [
        ("RS256", None, &all[..], None),
        ("ES256", None, all, None),
        ("EdDSA", None, all, None),
        ("EdDSA", None, &[Algorithm::Rs256], Some(Flaw::Malformed)),
        ("no kid", None, all, Some(Flaw::NoKey)),
        ("no kid", Some("d"), all, None),
        ("no kid", Some("other"), all, Some(Flaw::UnknownKey)),
    ] {
        let read = rules(default_key, algorithms).read(token(name), "", &keys, 1_403_455_000);
        assert_eq!(read.err(), expected, "{name}");
    }
    let read = |token: &str| rules(None, all).read(token, "", &keys, 0).err();
    assert_eq!(read(""), Some(Flaw::Malformed));
    assert_eq!(read(&"A".repeat(20_000)), Some(Flaw::Malformed));
    let none = "eyJhbGciOiJub25lIiwia2lkIjoiciJ9.eyJzdWIiOiJqb2UifQ.";
    assert_eq!(read(none), Some(Flaw::Malformed));
    let right = token("RS256");
    assert_eq!(
        read(&format!("{}A", &right[..right.len() - 1])),
        Some(Flaw::WrongSignature)
    );
}
