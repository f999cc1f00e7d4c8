//! Claims and scopes of tokens: any claims are read without a panic, and a scope allows what its pattern says.

use crosstie_auth::Access;
use crosstie_auth::oauth2::{Rules, Scope};
use crosstie_wamp::codec::{self, Limits};
use crosstie_wamp::{Serializer, Value};

/// Claims as JSON: what is read has a user, and only the scopes that the claims have.
pub fn claims(data: &[u8]) {
    let value = codec::decode_value(Serializer::Json, data, &Limits::default());
    let Ok(Value::Dict(claims)) = value else {
        return;
    };
    let rules = Rules {
        resource_server_id: "r".to_owned(),
        additional_scopes_key: Some("roles".to_owned()),
        scope_aliases: [("a".to_owned(), vec!["r.tag:a".to_owned()])].into(),
        ..Rules::default()
    };
    let Ok(token) = rules.content(&claims, "sent", 1_000) else {
        return;
    };
    assert!(!token.user.is_empty());
    assert!(token.tags.is_sorted());
    assert_eq!(token.opens("/"), token.grants("/").is_some());
    if let Some(grants) = token.grants("/") {
        // A right to a routing key includes that to the name.
        let [may, may_topic] = [
            grants.may(Access::Write, "q"),
            grants.may_topic(Access::Write, "q", "k"),
        ];
        assert!(may || !may_topic);
    }
}

/// A pattern and a name, in two lines.
pub fn scope(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else {
        return;
    };
    let (pattern, name) = text.split_once('\n').unwrap_or((text, ""));
    let _ = Scope::parse(pattern);
    if pattern.contains('/') {
        return;
    }
    let claims = vec![
        ("sub".to_owned(), Value::String("joe".to_owned())),
        ("aud".to_owned(), Value::Null),
        (
            "scope".to_owned(),
            Value::List(vec![Value::String(format!("read:v/{pattern}"))]),
        ),
    ];
    let token = Rules::default().content(&claims, "", 0).expect("claims");
    let may = token
        .grants("v")
        .is_some_and(|grants| grants.may(Access::Read, name));
    if !pattern.contains(['*', '%', '+']) {
        assert_eq!(may, pattern == name, "{pattern:?} {name:?}");
    }
    if pattern == "*" {
        assert!(may);
    }
    let first = pattern.split('*').next().unwrap_or_default();
    if !first.contains(['%', '+']) {
        assert!(!may || name.starts_with(first), "{pattern:?} {name:?}");
    }
}

pub fn claims_seeds() -> Vec<Vec<u8>> {
    [
        r#"{"sub": "joe", "aud": ["r"], "scope": "r.read:%2F/a*b r.write:*/q/k r.tag:a", "exp": 2000}"#,
        r#"{"client_id": "x", "aud": "y r", "roles": {"r": ["tag:b"]}, "nbf": 1.5}"#,
        r#"{"aud": "r", "scope": ["a"], "authorization": {"permissions": [{"scopes": ["r.read:*/*"]}, 1]}}"#,
    ]
    .map(|text| text.as_bytes().to_vec())
    .to_vec()
}

pub fn scope_seeds() -> Vec<Vec<u8>> {
    ["a*b\nab", "a%2A**\na*x", "+%zz\n ", "read:%2F/x/y\n"]
        .map(|text| text.as_bytes().to_vec())
        .to_vec()
}
