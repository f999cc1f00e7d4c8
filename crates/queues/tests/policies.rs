//! Policies beside RabbitMQ 3.10.8: the texts of its refusals, and which policy applies. The files hold what its HTTP
//! API answered, and for patterns what `re:compile` of its Erlang answered.

use crosstie_queues::QueueKind;
use crosstie_queues::policy::{
    Applied, Policies, Policy, PolicyKind, PolicyParts, PolicySubject, PolicyValue,
    is_without_effect,
};
use serde_json::Value as Json;

#[test]
fn policies_are_refused_with_rabbitmqs_texts() {
    check(PolicyKind::User, include_str!("policies/policies.txt"));
}

#[test]
fn operator_policies_are_refused_with_rabbitmqs_texts() {
    let text = include_str!("policies/operator_policies.txt");
    check(PolicyKind::Operator, text);
}

/// Each line: a pattern, a tab, and the answer. A third column is Crosstie's answer if it is another one.
#[test]
fn wrong_patterns_are_refused_where_rabbitmq_refuses_them() {
    let mut failures = Vec::new();
    for line in include_str!("policies/patterns.txt").lines() {
        let columns: Vec<_> = line.split('\t').collect();
        let expected = columns.last().unwrap_or(&"");
        let given = serde_json::json!({"pattern": columns[0], "definition": {"max-length": 1}});
        let answer = match parse(PolicyKind::User, &given) {
            Ok(_) => "ok".to_owned(),
            Err(text) => {
                let reason = text
                    .rsplit_once("is invalid: ")
                    .map_or("", |(_, reason)| reason);
                let words: Vec<_> = reason.split_whitespace().collect();
                words.join(" ").replace("\", ", "\",")
            }
        };
        if answer != *expected {
            failures.push(format!("{line}\n    {answer}"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn hostile_patterns_cost_little() {
    for pattern in [
        "(a{1000}){1000}",
        &"(a|".repeat(3000),
        &"a".repeat(5000),
        "(?=(a{500}){500})",
    ] {
        let given = serde_json::json!({"pattern": pattern, "definition": {"max-length": 1}});
        let text = parse(PolicyKind::User, &given).expect_err("it is too large");
        assert!(
            text.contains("pattern should be regular expression but is invalid"),
            "{text}"
        );
    }
    // It backtracks for ever on a name that does not match, which is then taken for one that does not match.
    let policies = policies(
        &[(
            "p",
            r#"{"pattern": "^(?=(a+)+$)(\\1)+b", "definition": {"max-length": 1}}"#,
        )],
        &[],
    );
    assert_eq!(shown(&policies, &"a".repeat(255), QueueKind::Classic), "-");
}

#[rustfmt::skip]
const POLICIES: &[(&str, &str)] = &[
    ("any", r#"{"pattern": "", "definition": {"max-length": 9}, "priority": -3}"#),
    ("streams", r#"{"pattern": "^s", "definition": {"max-age": "7D"}, "priority": 2}"#),
    ("quorum", r#"{"pattern": "q", "definition": {"delivery-limit": 5, "max-length": 3}, "priority": 1.5}"#),
    ("capital", r#"{"pattern": "Q", "definition": {"expires": 5000}, "priority": 1, "apply-to": "queues"}"#),
    ("exchanges", r#"{"pattern": ".*", "definition": {"alternate-exchange": "ae"}, "apply-to": "exchanges"}"#),
    ("mirrors", r#"{"pattern": "ha$", "definition": {"ha-mode": "all", "max-length": 4}, "priority": 9}"#),
];

#[test]
fn the_first_policy_that_fits_applies() {
    let operator = [(
        "limit",
        r#"{"pattern": "q", "definition": {"max-length": 5, "expires": 60000}}"#,
    )];
    let policies = policies(POLICIES, &operator);
    let rows = [
        // A stream has no maximum length, so `any` does not apply to it.
        ("stream", QueueKind::Stream, r#"streams - {"max-age":"7D"}"#),
        ("plain-stream", QueueKind::Stream, "-"),
        ("stream", QueueKind::Classic, r#"any - {"max-length":9}"#),
        (
            "xqx",
            QueueKind::Quorum,
            r#"quorum limit {"delivery-limit":5,"expires":60000,"max-length":3}"#,
        ),
        // `quorum` has a key that a classic queue does not know, and is skipped as a whole.
        (
            "xqx",
            QueueKind::Classic,
            r#"any limit {"expires":60000,"max-length":5}"#,
        ),
        ("xQx", QueueKind::Classic, r#"capital - {"expires":5000}"#),
        (
            "a.ha",
            QueueKind::Classic,
            r#"mirrors - {"ha-mode":"all","max-length":4}"#,
        ),
        ("a.ha", QueueKind::Quorum, r#"any - {"max-length":9}"#),
        ("a.ha.b", QueueKind::Classic, r#"any - {"max-length":9}"#),
    ];
    for (name, kind, expected) in rows {
        assert_eq!(shown(&policies, name, kind), expected, "{name} {kind:?}");
    }
    let exchange = policies.apply(PolicySubject::Exchange("a.z"));
    assert_eq!(
        text(&exchange),
        r#"exchanges - {"alternate-exchange":"ae"}"#
    );
}

/// RabbitMQ's order of equal priorities follows from a hash.
#[test]
fn of_equal_priorities_the_first_name_applies() {
    let body = r#"{"pattern": "", "definition": {"max-length": 1}, "priority": 1}"#;
    let policies = policies(&[("b", body), ("a", body), ("c", body)], &[]);
    assert_eq!(
        shown(&policies, "x", QueueKind::Classic),
        r#"a - {"max-length":1}"#
    );
}

#[test]
fn no_policy_leaves_nothing() {
    let applied = Policies::default().apply(PolicySubject::Queue("q", QueueKind::Classic));
    assert!(applied.is_empty() && applied.definition().is_empty());
}

#[test]
fn keys_about_storage_have_no_effect() {
    for key in [
        "ha-mode",
        "queue-mode",
        "max-in-memory-length",
        "initial-cluster-size",
    ] {
        assert!(is_without_effect(key), "{key}");
    }
    for key in ["max-length", "max-age", "alternate-exchange"] {
        assert!(!is_without_effect(key), "{key}");
    }
}

/// Characters that are operators within `[…]` elsewhere are ordinary ones to RabbitMQ.
#[test]
fn classes_hold_what_they_hold_in_rabbitmq() {
    let rows = [
        (r"^[\w-.]+$", "a-b.c", true),
        ("^[a&&b]$", "&", true),
        ("^[[x]$", "[", true),
        ("^[a~~b]$", "~", true),
        ("^[+--]$", ",", true),
        ("^[^[]$", "[", false),
        ("^[]x]$", "]", true),
        ("^[[:alpha:]-]$", "-", true),
    ];
    for (pattern, name, expected) in rows {
        let body = serde_json::json!({"pattern": pattern, "definition": {"max-length": 1}});
        let policies = policies(&[("p", &body.to_string())], &[]);
        let is_applied = shown(&policies, name, QueueKind::Classic) != "-";
        assert_eq!(is_applied, expected, "{pattern} {name}");
    }
}

/// A key of RabbitMQ 3.12 and later.
#[test]
fn a_consumer_timeout_is_a_whole_number() {
    let body =
        |value: Json| serde_json::json!({"pattern": "", "definition": {"consumer-timeout": value}});
    assert!(parse(PolicyKind::User, &body(5.into())).is_ok());
    assert_eq!(
        parse(PolicyKind::User, &body(Json::from(-1))).map(drop),
        Err("Validation failed\n\n-1 is not a valid consumer timeout\n".to_owned())
    );
}

/// Bodies and what RabbitMQ answered: `ok`, or the text after its first line, in JSON.
fn check(kind: PolicyKind, recorded: &str) {
    let lines: Vec<_> = recorded.lines().collect();
    let mut failures = Vec::new();
    for pair in lines.chunks(2) {
        let given: Json = serde_json::from_str(pair[0]).expect("a body");
        let expected = match pair[1].trim() {
            "ok" => Ok(()),
            text => {
                let text: String = serde_json::from_str(text).expect("a text");
                Err(format!("Validation failed\n\n{text}"))
            }
        };
        let answer = parse(kind, &given).map(drop);
        if answer != expected {
            failures.push(format!("{}\n    {expected:?}\n    {answer:?}", pair[0]));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(lines.len() > 100);
}

fn policies(user: &[(&str, &str)], operator: &[(&str, &str)]) -> Policies {
    let parsed = |kind, rows: &[(&str, &str)]| {
        let rows = rows.iter().map(|(name, body)| {
            let body: Json = serde_json::from_str(body).expect("a body");
            parse_named(kind, name, &body).expect("a policy")
        });
        rows.collect::<Vec<_>>()
    };
    Policies::new(
        parsed(PolicyKind::User, user),
        parsed(PolicyKind::Operator, operator),
    )
}

fn shown(policies: &Policies, name: &str, kind: QueueKind) -> String {
    text(&policies.apply(PolicySubject::Queue(name, kind)))
}

fn text(applied: &Applied) -> String {
    let name = |policy: Option<&std::sync::Arc<Policy>>| {
        policy.map_or_else(|| "-".to_owned(), |p| p.name().to_string())
    };
    if applied.is_empty() {
        return "-".to_owned();
    }
    let definition = applied.definition().iter();
    let definition: serde_json::Map<_, _> = definition
        .map(|(key, value)| (key.to_string(), json(value)))
        .collect();
    format!(
        "{} {} {}",
        name(applied.policy()),
        name(applied.operator_policy()),
        Json::Object(definition)
    )
}

fn parse(kind: PolicyKind, body: &Json) -> Result<Policy, String> {
    parse_named(kind, "p", body)
}

fn parse_named(kind: PolicyKind, name: &str, body: &Json) -> Result<Policy, String> {
    let part = |key: &str| body.get(key).map(value);
    let absent = PolicyValue::Null;
    let (pattern, definition) = (part("pattern"), part("definition"));
    let (priority, apply_to) = (part("priority"), part("apply-to"));
    let parts = PolicyParts {
        name,
        pattern: pattern.as_ref().unwrap_or(&absent),
        definition: definition.as_ref().unwrap_or(&absent),
        priority: priority.as_ref(),
        apply_to: apply_to.as_ref(),
    };
    Policy::parse(kind, parts)
}

fn value(json: &Json) -> PolicyValue {
    match json {
        Json::Null => PolicyValue::Null,
        Json::Bool(value) => PolicyValue::Bool(*value),
        Json::Number(number) => match number.as_i128() {
            Some(integer) => PolicyValue::Integer(integer),
            None => PolicyValue::Float(number.as_f64().expect("a number")),
        },
        Json::String(text) => PolicyValue::Text(text.clone()),
        Json::Array(items) => PolicyValue::List(items.iter().map(value).collect()),
        Json::Object(entries) => {
            let entries = entries.iter();
            PolicyValue::Map(
                entries
                    .map(|(key, json)| (key.clone(), value(json)))
                    .collect(),
            )
        }
    }
}

fn json(value: &PolicyValue) -> Json {
    match value {
        PolicyValue::Integer(integer) => Json::from(i64::try_from(*integer).expect("a small one")),
        PolicyValue::Text(text) => Json::from(&**text),
        other => panic!("{other}: no row has such a value"),
    }
}
