//! Changes of each kind, as scripts.

mod support;

use crosstie_metadata::{Change, Entry, Json, Layers, Metadata, Outcome, RefusalKind};

use support::{Machine, check, entry_of, layers};

#[test]
fn users_have_rabbitmqs_hashes_and_answers() {
    check(
        r#"
        put user al {"password": "x"} => 400 tags_not_present
        put user al {"tags": 5} => 400 tags: expected a list of texts, got 5
        put user al {"tags": "a, b,", "password": "x"} => 201
        put user al {"tags": ["a", "b"], "password": "x"} => 204
        put user al {"tags": "", "password": "x", "password_hash": "y"} => 400 both_password_and_password_hash_are_provided
        put user bo {"tags": "", "password_hash": "!!!"} => 400 a password hash that is not Base64
        put user bo {"tags": "", "password_hash": "aGFsbG8="} => 400 a password hash of 5 bytes, expected 36 for rabbit_password_hashing_sha256, salt included
        put user bo {"tags": "", "password_hash": "aGFsbG8=", "hashing_algorithm": "rabbit_password_hashing_md5"} => 400 hashing_algorithm: expected rabbit_password_hashing_sha256 or rabbit_password_hashing_sha512, got "rabbit_password_hashing_md5"
        put user bo {"tags": "", "password_hash": "gwx+5SxTMeayawF8t24/NftJwZNCLxxnLwH9wryUCgH2pdJd"} => 201
        put user cy {"tags": "", "limits": {"max-channels": 4}} => 201
        put user bo {"tags": ""} => 204
        put user di {"tags": "", "password_hash": ""} => 201
        put user bo {"tags": "", "limits": {"nope": 4}} => 400 Unrecognised terms [{<<"nope">>,4}] in user-limits
        delete user guest => 204
        delete user guest => 404 Not Found
        delete user config => 409 user 'config' is read-only: the configuration has it under "amqp.users"; change it there and reload the node
        put user config {"tags": ""} => 409 user 'config' is read-only: the configuration has it under "amqp.users"; change it there and reload the node
        restart
        list users => al 'x' rabbit_password_hashing_sha256 ["a","b"] {}; bo no password rabbit_password_hashing_sha256 [] {}; config no password rabbit_password_hashing_sha256 [] {}; cy '' rabbit_password_hashing_sha256 [] {"max-channels":4}; di no password rabbit_password_hashing_sha256 [] {}
        "#,
    );
}

#[test]
fn a_user_guest_logs_in_from_its_own_machine_alone_as_in_rabbitmq() {
    let is_remote = |layers: Layers, name: &str| {
        let mut machine = Machine::new();
        machine.state = Metadata::new(layers);
        let put = format!(r#"put user {name} {{"password": "x", "tags": ""}}"#);
        assert_eq!(machine.run(&put), "201");
        assert_eq!(machine.run(&put), "204");
        machine.state.user(name).expect("is made").is_remote_allowed
    };
    let mut without = layers();
    without.users.clear();
    assert!(!is_remote(without, "guest"));
    assert!(is_remote(layers(), "al"));
}

#[test]
fn what_belongs_to_a_user_or_a_vhost_goes_with_it() {
    check(
        r#"
        put user al {"tags": ""} => 201
        put vhost v {"description": "d", "tags": "a,b"} => 201
        put vhost v {} => 204
        put vhost v {"default_queue_type": "nope"} => 400 default_queue_type: expected "classic", got "nope": clients name other types by x-queue-type
        put vhost v {"tracing": "x"} => 400 not_boolean: "x"
        put vhost v {"description": "e", "default_queue_type": "classic"} => 204
        put permission v al {"configure": "^a", "write": "", "read": ".*"} => 201
        put permission v al {"configure": "^b", "write": "", "read": "^.*$"} => 204
        put topic-permission v al {"exchange": "amq.topic", "write": "^{username}", "read": "(?"} => 400 invalid_regexp: "(?": Parsing error at position 2: Opening parenthesis without closing parenthesis
        put topic-permission v al {"exchange": "amq.topic", "write": "^{username}", "read": ".*"} => 201
        put topic-permission v al {"exchange": "", "write": "", "read": ""} => 201
        put vhost-limits v max-queues {"value": 5} => 204
        put policy v p {"pattern": "x", "definition": {"max-length": 5}} => 201
        put operator-policy v p {"pattern": "x", "definition": {"max-length": 5}} => 201
        put user-limits al max-channels {"value": 5} => 204
        restart
        list vhosts => /  [] undefined; far  [] undefined; home  [] undefined; v e [] classic
        list permissions => guest / .* .* .*; config home .* .* .*; al v ^b  ^.*$; guest v .* .* .*
        list topic-permissions => al v   ; al v amq.topic ^{username} .*
        delete topic-permission v al amq.topic => 204
        delete topic-permission v al amq.topic => 404 Not Found
        delete topic-permission v al => 204
        put topic-permission v al {"exchange": "x", "write": "", "read": ""} => 201
        delete vhost v => 204
        list records => ["user","al"]; ["user-limits","al"]
        put policy v p {"pattern": "x", "definition": {"max-length": 5}} => 404 vhost_not_found
        put permission / al {"configure": "", "write": "", "read": ""} => 201
        put topic-permission / al {"exchange": "x", "write": "", "read": ""} => 201
        delete user al => 204
        list records =>
        delete vhost v => 404 Not Found
        delete vhost home => 409 vhost 'home' is read-only: the configuration has it under "amqp.vhosts"; change it there and reload the node
        put vhost / {} => 204
        list permissions => guest / .* .* .*; config home .* .* .*
        restart
        "#,
    );
}

#[test]
fn permissions_need_a_vhost_and_a_user() {
    check(
        r#"
        put permission / no {"configure": "", "write": "", "read": ""} => 400 vhost_or_user_not_found
        put permission no guest {"configure": "", "write": "", "read": ""} => 400 vhost_or_user_not_found
        put permission / guest {} => 400 [{key_missing,configure},{key_missing,write},{key_missing,read}]
        put permission / guest {"configure": "(", "write": "", "read": ""} => 400 invalid_regexp: "(": Parsing error at position 1: Opening parenthesis without closing parenthesis
        put permission / guest {"configure": 5, "write": "", "read": ""} => 400 configure: expected a text, got 5
        put permission / guest {"configure": "a", "write": "", "read": ""} => 204
        delete permission / guest => 204
        delete permission / guest => 404 Not Found
        delete permission home config => 409 permission of user 'config' in vhost 'home' is read-only: the configuration has it under "amqp.vhosts"; change it there and reload the node
        put permission home guest {"configure": "a", "write": "", "read": ""} => 201
        put permission far guest {"configure": "a", "write": "", "read": ""} => 503 vhost 'far' is replicated, and this node does not own it
        put topic-permission no guest {"exchange": "", "write": "", "read": ""} => 400 vhost_or_user_not_found
        put topic-permission / guest {"write": ""} => 400 [{key_missing,exchange},{key_missing,read}]
        restart
        list permissions => config home .* .* .*; guest home a
        "#,
    );
}

#[test]
fn limits_are_refused_in_rabbitmqs_words() {
    check(
        r#"
        put vhost-limits no max-queues {"value": 5} => 404 vhost_not_found
        put vhost-limits / nope {"value": 5} => 400 Validation failed\n\nUnrecognised terms [{<<"nope">>,5}] in limits\n
        put vhost-limits / max-queues {"value": "7"} => 400 Validation failed\n\nmax-queues should be a number, actually was <<"7">>\n
        put vhost-limits / max-queues {"value": 1.5} => 400 Validation failed\n\nmax-queues should be a number, actually was 1.5\n
        put vhost-limits / max-queues {} => 400 [{key_missing,value}]
        put vhost-limits / max-queues {"value": 7} => 204
        put vhost-limits / max-connections {"value": -1} => 204
        put vhost-limits far max-queues {"value": 7} => 503 vhost 'far' is replicated, and this node does not own it
        put user-limits no max-channels {"value": 5} => 400 no_such_user: no
        put user-limits config nope {"value": 5} => 400 Unrecognised terms [{<<"nope">>,5}] in user-limits
        put user-limits config max-channels {"value": "5"} => 400 max-channels should be a number, actually was <<"5">>
        put user-limits config max-channels {"value": 5} => 204
        restart
        list vhost-limits => / {"max-connections":-1,"max-queues":7}
        list user-limits => config {"max-channels":5}
        delete vhost-limits / max-queues => 204
        delete vhost-limits / nope => 204
        list vhost-limits => / {"max-connections":-1}
        delete vhost-limits / max-connections => 204
        list vhost-limits =>
        put vhost-limits / {"value": {"max-queues": 1, "max-connections": 2}} => 204
        delete vhost-limits / => 204
        delete vhost-limits / => 204
        delete user-limits config => 204
        list records =>
        "#,
    );
}

#[test]
fn policies_are_checked_and_kept() {
    check(
        r#"
        put policy / p {} => 400 [{key_missing,pattern},{key_missing,definition}]
        put policy / p {"pattern": "(", "definition": {}} => 400 Validation failed\n\nno policy provided\npattern should be regular expression but is invalid: {"missing )",1}\n
        put policy / p {"pattern": "x", "definition": {"max-length": 5, "expires": 7}, "priority": null, "apply-to": null} => 400 Validation failed\n\napply-to 'null' unrecognised; should be 'queues', 'exchanges' or 'all'\npriority should be a number, actually was null\n
        put policy no p {"pattern": "x", "definition": {"max-length": 5}} => 404 vhost_not_found
        put policy / p {"pattern": "x", "definition": {"max-length": 5, "expires": 7}, "priority": 1.5} => 201
        put policy / p {"pattern": "^x", "definition": {"max-length": 5, "dead-letter-exchange": "y"}, "priority": 1.5, "apply-to": "queues"} => 204
        put operator-policy / o {"pattern": "x", "definition": {"overflow": "drop-head"}} => 400 Validation failed\n\n[{<<"overflow">>,<<"drop-head">>}] are not recognised policy settings\n
        put operator-policy / o {"pattern": "x", "definition": {"max-length": 5}, "priority": -1} => 201
        put policy far p {"pattern": "x", "definition": {"max-length": 5}} => 503 vhost 'far' is replicated, and this node does not own it
        restart
        list policies => / p ^x queues {"dead-letter-exchange":"y","max-length":5} 1.5
        list operator-policies => / o x all {"max-length":5} -1
        put vhost-limits / max-queues {"value": 7} => 204
        list parameters => {"pattern":"x","apply-to":"all","definition":{"max-length":5},"priority":-1} / operator_policy o; {"max-queues":7} / vhost-limits limits
        delete policy / p => 204
        delete policy / p => 404 Not Found
        delete operator-policy / o => 204
        list records => ["vhost-limits","/"]
        "#,
    );
}

#[test]
fn global_parameters_hold_any_value() {
    check(
        r#"
        put global-parameter foo {"value": {"a": 1}} => 201
        put global-parameter foo {"value": null} => 204
        put global-parameter foo {} => 400 [{key_missing,value}]
        put global-parameter cluster_name {"value": "y"} => 204
        restart
        list global-parameters => cluster_name y; foo null
        delete global-parameter foo => 204
        delete global-parameter foo => 404 Not Found
        "#,
    );
}

#[test]
fn the_configuration_overrides_what_was_made_at_run_time() {
    check(
        r#"
        put user al {"tags": "mine"} => 201
        put permission / al {"configure": "a", "write": "", "read": ""} => 201
        put user-limits al max-channels {"value": 5} => 204
        configure al => user 'al'
        delete user al => 409 user 'al' is read-only: the configuration has it under "amqp.users"; change it there and reload the node
        list permissions => al / a  ; guest / .* .* .*; config home .* .* .*
        list records => ["permission","/","al"]; ["user-limits","al"]
        restart
        "#,
    );
}

#[test]
fn all_of_several_changes_are_made_or_none() {
    let state = Metadata::new(layers());
    let put = |entry: &str, body: &str| {
        let body: Json = serde_json::from_str(body).expect("JSON");
        Change::put(entry_of(entry), &body, None).expect("a change")
    };
    let both = Change::All(vec![
        put("user al", r#"{"tags": ""}"#),
        put(
            "permission / al",
            r#"{"configure": "", "write": "", "read": ""}"#,
        ),
    ]);
    let (changed, applied) = state.apply(both, &mut || *b"salt").expect("applied");
    assert_eq!(applied.outcome, Outcome::Created);
    assert_eq!(applied.records.len(), 2);
    assert!(changed.user("al").is_some());
    let contradictory = Change::All(vec![
        put("user al", r#"{"tags": ""}"#),
        put(
            "permission no al",
            r#"{"configure": "", "write": "", "read": ""}"#,
        ),
    ]);
    state
        .apply(contradictory, &mut || *b"salt")
        .expect_err("there is no vhost 'no'");
    assert!(state.user("al").is_none());
}

#[test]
fn a_change_deletes_one_vhost_at_most_and_then_creates_none() {
    let vhost = |name: &str| Entry::Vhost(name.into());
    let put = |name: &str| {
        let body = Json::Object(serde_json::Map::new());
        Change::put(vhost(name), &body, None).expect("a change")
    };
    let state = Metadata::new(layers());
    let (state, _) = state.apply(put("v"), &mut || *b"salt").expect("applied");
    let delete = || Change::Delete(vhost("v"));
    let renewed = Change::All(vec![delete(), put("v")]);
    let refused = state.apply(renewed, &mut || *b"salt").expect_err("refused");
    assert_eq!(refused.kind, RefusalKind::Unsupported);
    assert_eq!(
        refused.reason,
        "a change that deletes a vhost changes no other, and this one changes 'v' and then 'v'"
    );
    let two = Change::All(vec![put("w"), delete()]);
    let refused = state.apply(two, &mut || *b"salt").map(|_| ());
    assert_eq!(refused.map_err(|e| e.kind), Err(RefusalKind::Unsupported));
    let created = Change::All(vec![put("w"), put("x")]);
    assert!(state.apply(created, &mut || *b"salt").is_ok());
    let present = Change::All(vec![put("home"), delete()]);
    assert!(state.apply(present, &mut || *b"salt").is_ok());
}

#[test]
fn a_record_of_a_later_version_is_refused() {
    let mut state = Metadata::new(layers());
    for (key, value) in [
        ("[\"nothing\",\"x\"]", "{}"),
        ("[\"user\"]", "{}"),
        ("x", "{}"),
        ("[\"user\",\"x\"]", "{}"),
        ("[\"permission\",\"/\",\"guest\"]", "{\"configure\":\"(\"}"),
        ("[\"vhost-limits\",\"/\"]", "{\"max-later\":1}"),
    ] {
        let refused = state.restore(key, value).expect_err(key);
        assert_eq!(refused.key, key);
    }
}
