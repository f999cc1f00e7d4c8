//! The entries of replicated vhosts.

mod support;

use std::collections::BTreeMap;
use std::sync::Arc;

use crosstie_metadata::{Change, Json, Metadata, Origin, Permission, PolicyKind};

use support::{check, entry_of, layers};

#[test]
fn entries_of_a_replicated_vhost_are_where_its_owner_is() {
    check(
        r#"
        put vhost far {"description": "x"} => 503 vhost 'far' is replicated, and this node does not own it
        delete policy far p => 503 vhost 'far' is replicated, and this node does not own it
        delete permission far guest => 503 vhost 'far' is replicated, and this node does not own it
        delete topic-permission far guest => 503 vhost 'far' is replicated, and this node does not own it
        delete vhost-limits far => 503 vhost 'far' is replicated, and this node does not own it
        own far
        put vhost far {"description": "x"} => 204
        put user al {"tags": ""} => 201
        put permission far al {"configure": "a", "write": "a", "read": "a"} => 201
        put topic-permission far al {"exchange": "x", "write": "w", "read": "r"} => 201
        put permission / al {"configure": "b", "write": "b", "read": "b"} => 201
        put policy far p {"pattern": "x", "definition": {"max-length": 5}} => 201
        put operator-policy far o {"pattern": "x", "definition": {"max-length": 5}} => 201
        put vhost-limits far max-queues {"value": 7} => 204
        list records => ["permission","/","al"]; ["user","al"]
        leave far
        list permissions => al / b b b; guest / .* .* .*; config home .* .* .*
        list policies =>
        list operator-policies =>
        list topic-permissions =>
        list vhost-limits =>
        restart
        own far
        list permissions => al / b b b; guest / .* .* .*; al far a a a; config home .* .* .*
        list policies => far p x all {"max-length":5} 0
        list operator-policies => far o x all {"max-length":5} 0
        list topic-permissions => al far x w r
        list vhost-limits => far {"max-queues":7}
        list vhosts => /  [] undefined; far x [] undefined; home  [] undefined
        delete policy far p => 204
        delete policy far p => 404 Not Found
        delete user al => 204
        list permissions => guest / .* .* .*; config home .* .* .*
        leave far
        own far
        list permissions => guest / .* .* .*; config home .* .* .*
        list operator-policies => far o x all {"max-length":5} 0
        list policies =>
        "#,
    );
}

#[test]
fn of_a_user_that_only_another_node_has_the_permissions_stay() {
    let entry = |user: &str| {
        let key = format!("[\"permission\",\"far\",\"{user}\"]");
        (
            key.into(),
            r#"{"configure":"a","write":"","read":""}"#.into(),
        )
    };
    let log: BTreeMap<Arc<str>, Arc<str>> = [entry("al"), entry("guest")].into();
    let mut state = Metadata::new(layers());
    assert_eq!(
        state.begin_term(&"far".into(), 1, &log).overridden,
        [],
        "the configuration has none of them"
    );
    assert_eq!(state.forget_orphans(), []);
    assert_eq!(state.list_permissions(Some("far"), None).len(), 2);
    let (state, overridden, orphans) = state.reconfigured(layers());
    assert_eq!((overridden.len(), orphans.len()), (0, 0));
    assert_eq!(state.list_permissions(Some("far"), Some("al")).len(), 1);
}

#[test]
fn what_the_configuration_has_counts_above_a_log_and_unknown_entries_are_named() {
    let log: BTreeMap<Arc<str>, Arc<str>> = [
        (r#"["later","far"]"#.into(), "{}".into()),
        (r#"["vhost-limits","/"]"#.into(), "{}".into()),
        (r#"["policy","far","p"]"#.into(), "{}".into()),
        (
            r#"["permission","far","config"]"#.into(),
            r#"{"configure":"a","write":"","read":""}"#.into(),
        ),
    ]
    .into();
    let mut layers = layers();
    let pair = ("far".into(), "config".into());
    let configured = Origin::Configured("amqp.vhosts");
    layers
        .permissions
        .push((pair, Permission::all(), configured));
    let mut state = Metadata::new(layers);
    let begun = state.begin_term(&"far".into(), 1, &log);
    let overridden: Vec<_> = begun.overridden.iter().map(ToString::to_string).collect();
    assert_eq!(overridden, ["permission of user 'config' in vhost 'far'"]);
    assert_eq!(
        begun.unreadable,
        [
            r#"["later","far"]"#.into(),
            r#"["policy","far","p"]"#.into(),
            r#"["vhost-limits","/"]"#.into(),
        ] as [Arc<str>; 3]
    );
}

#[test]
fn a_state_that_takes_the_place_of_another_keeps_its_terms() {
    let change = |state: &Metadata, entry: &str, body: &str| {
        let body: Json = serde_json::from_str(body).expect("JSON");
        let change = Change::put(entry_of(entry), &body, None).expect("a change");
        state.apply(change, &mut || *b"salt").expect("applied").0
    };
    let policy = r#"{"pattern": "x", "definition": {"max-length": 5}}"#;
    let mut before = Metadata::new(layers());
    before.begin_term(&"far".into(), 1, []);
    let before = change(&before, "policy far p", policy);
    // A change that waits for its store meanwhile.
    let next = change(&before, "user al", r#"{"tags": ""}"#);
    assert!(next.with_terms_of(&before).is_none());
    let mut now = before;
    now.end_term("far");
    let put = next.with_terms_of(&now).expect("the term has ended");
    assert!(put.is_elsewhere("far") && put.user("al").is_some());
    assert!(put.list_policies(PolicyKind::User, None).is_empty());
    let entries: BTreeMap<Arc<str>, Arc<str>> = [(
        r#"["vhost-limits","far"]"#.into(),
        r#"{"max-queues":7}"#.into(),
    )]
    .into();
    now.begin_term(&"far".into(), 2, &entries);
    let put = next.with_terms_of(&now).expect("another term has begun");
    assert!(!put.is_elsewhere("far") && put.user("al").is_some());
    assert!(put.list_policies(PolicyKind::User, None).is_empty());
    assert_eq!(put.list_vhost_limits(Some("far")).len(), 1);
}
