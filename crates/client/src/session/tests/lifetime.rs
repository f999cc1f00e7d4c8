//! The beginning and the end of a session, and messages that are invalid in it.

use crosstie_wamp::codec::{self, Limits};
use crosstie_wamp::{Message, Serializer};

use super::actor::{Actor, check, run};

#[test]
fn join_challenged() {
    run(r#"
        do join
        > HELLO
        < [4, "ticket", {}]
        = challenged ticket
        do authenticate secret
        > [5,"secret",{}]
        < [2, 7, {}]
        = joined 7
    "#);
}

#[test]
fn join_refused() {
    run(r#"
        do join
        > HELLO
        < [3, {"message": "nobody knows it"}, "wamp.error.no_such_realm"]
        = aborted wamp.error.no_such_realm ["nobody knows it"]
        < [2, 7, {}]
        = violation: expected nothing outside a session, got WELCOME
    "#);
}

#[test]
fn out_of_order() {
    run(r#"
        do join
        > HELLO
        < [50, 1, {}]
        = violation: expected WELCOME, CHALLENGE or ABORT, got RESULT
    "#);
    check("< [2, 7, {}]\n= violation: expected a message that routers send, got WELCOME");
    check("< [50, 1, {}]\n= violation: expected request ids up to 0, got RESULT 1");
    check(
        r#"
        do register 1 a
        > [64,1,{},"a"]
        < [33, 1, 5]
        = violation: expected the answer to REGISTER 1, got SUBSCRIBED
        "#,
    );
    check(
        r#"
        do register 1 a
        > [64,1,{},"a"]
        < [8, 48, 1, {}, "x"]
        = violation: expected the answer to REGISTER 1, got ERROR
        "#,
    );
    check(
        r#"
        do register 1 a
        > [64,1,{},"a"]
        < [50, 1, {"progress": true}]
        = violation: expected the answer to REGISTER 1, got RESULT
        "#,
    );
}

#[test]
fn leave() {
    check(
        r#"
        do leave
        > [6,{},"wamp.close.close_realm"]
        do leave
        < [6, {}, "wamp.close.goodbye_and_out"]
        = left
        "#,
    );
}

#[test]
fn sent_away() {
    check(
        r#"
        < [6, {}, "wamp.close.system_shutdown"]
        > [6,{},"wamp.close.goodbye_and_out"]
        = sent away wamp.close.system_shutdown
        < [50, 1, {}]
        = violation: expected nothing outside a session, got RESULT
        "#,
    );
}

#[test]
fn goodbyes_cross() {
    check(
        r#"
        do leave
        > [6,{},"wamp.close.close_realm"]
        < [6, {}, "wamp.close.system_shutdown"]
        = left
        "#,
    );
}

#[test]
fn waiters_are_returned() {
    let mut actor = Actor::new();
    actor.act("join");
    actor.receive("[2, 7, {}]");
    for operation in [
        "call a",
        "publish a",
        "publish a acknowledge",
        "subscribe 1 a",
    ] {
        actor.act(operation);
    }
    let mut waiters: Vec<_> = actor.session.into_waiters().collect();
    waiters.sort();
    assert_eq!(
        waiters,
        ["call a", "publish a acknowledge", "subscribe 1 a"]
    );
}

/// Every type of message, in a session that expects none of them, is a violation or has no effect; none causes a panic.
#[test]
fn unexpected_messages_never_panic() {
    let messages = [
        "[1, \"r\", {}]",
        "[5, \"s\", {}]",
        "[16, 1, {}, \"t\"]",
        "[32, 1, {}, \"t\"]",
        "[48, 1, {}, \"p\"]",
        "[64, 1, {}, \"p\"]",
        "[70, 1, {}]",
        "[17, 1, 1]",
        "[35, 1]",
        "[67, 1]",
        "[69, 1, {}]",
        "[36, 1, 1, {}]",
        "[68, 1, 1, {}]",
    ];
    for json in messages {
        let mut actor = Actor::new();
        actor.receive(json);
        assert!(actor.seen[0].starts_with("= violation"), "{json}");
        let mut actor = Actor::new();
        actor.act("join");
        actor.receive("[2, 7, {}]");
        actor.receive(json);
        let limits = Limits::default();
        let bytes = json.as_bytes();
        let message = codec::decode(Serializer::Json, bytes, &limits).unwrap();
        let harmless = matches!(
            message,
            Message::Interrupt { .. } | Message::Event { .. } | Message::Invocation { .. }
        );
        let ended = actor
            .seen
            .iter()
            .any(|line| line.starts_with("= violation"));
        assert_eq!(ended, !harmless, "{json}: {:?}", actor.seen);
    }
}
