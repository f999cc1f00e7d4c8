//! Calls and publications.

use crosstie_wamp::{CallOptions, Payload, Serializer};

use super::actor::{Actor, check};

#[test]
fn calls() {
    check(
        r#"
        do call a
        > [48,1,{},"a",[1]]
        do call b
        > [48,2,{},"b",[1]]
        < [50, 2, {}, [5]]
        = call b: result [5]
        < [8, 48, 1, {}, "com.error", ["why"]]
        = call a: com.error ["why"]
        < [50, 1, {}]
        "#,
    );
}

#[test]
fn progressive_results() {
    check(
        r#"
        do call a
        > [48,1,{},"a",[1]]
        < [50, 1, {"progress": true}, [1]]
        = call a: progress [1]
        < [50, 1, {}, [2]]
        = call a: result [2]
        < [50, 1, {"progress": true}, [3]]
        "#,
    );
}

#[test]
fn progressive_call() {
    check(
        r#"
        do call a more
        > [48,1,{"progress":true},"a",[1]]
        do send 1 a more
        > [48,1,{"progress":true},"a",[1]]
        = sent true
        do send 1 a
        > [48,1,{},"a",[1]]
        = sent true
        do send 1 a
        = sent false
        < [50, 1, {}]
        = call a more: result
        do send 1 a
        = sent false
        "#,
    );
}

#[test]
fn cancelled_call() {
    check(
        r#"
        do call a more
        > [48,1,{"progress":true},"a",[1]]
        do cancel 1
        > [49,1,{"mode":"kill"}]
        do send 1 a
        = sent false
        < [8, 48, 1, {}, "wamp.error.canceled"]
        = call a more: wamp.error.canceled
        do cancel 1
        "#,
    );
}

#[test]
fn publications() {
    check(
        r#"
        do publish a
        > [16,1,{},"a",[1]]
        do publish a acknowledge
        > [16,2,{"acknowledge":true},"a",[1]]
        < [17, 2, 99]
        = publish a acknowledge: published 99
        do publish a acknowledge
        > [16,3,{"acknowledge":true},"a",[1]]
        < [8, 16, 3, {}, "wamp.error.not_authorized"]
        = publish a acknowledge: wamp.error.not_authorized
        "#,
    );
}

#[test]
fn unsendable_requests_use_no_request_id() {
    let mut actor = Actor::new();
    actor.act("join");
    actor.receive("[2, 7, {}]");
    let huge = format!("[{:?}]", "x".repeat(1 << 24));
    let payload = Payload::new(Serializer::Json, huge.as_bytes(), b"");
    let options = CallOptions::default();
    let out = &mut actor.outgoing;
    let refused = actor
        .session
        .call("a", options, payload, "huge".to_owned(), out);
    assert!(refused.is_err());
    actor.seen.clear();
    actor.act("call b");
    assert_eq!(actor.seen, [r#"> [48,1,{},"b",[1]]"#]);
    assert_eq!(actor.session.into_waiters().collect::<Vec<_>>(), ["call b"]);
}
