//! Registrations and subscriptions.

use super::actor::check;

#[test]
fn registrations() {
    check(
        r#"
        do register 1 a
        > [64,1,{},"a"]
        < [65, 1, 50]
        = register 1 a: done
        < [68, 1, 50, {}, [2]]
        = invoked 1 1 [2]
        do yield 1
        > [70,1,{},[1]]
        = sent true
        do yield 1
        = sent false
        < [68, 2, 50, {}]
        = invoked 1 2
        do yield 2 more
        > [70,2,{"progress":true},[1]]
        = sent true
        < [69, 2, {}]
        = handler 2: interrupted
        do fail 2 com.error
        > [8,68,2,{},"com.error",[1]]
        = sent true
        < [69, 2, {}]
        do unregister 1
        > [66,2,50]
        < [67, 2]
        = unregister 1: done
        < [68, 3, 50, {}]
        > [8,68,3,{},"wamp.error.unavailable"]
        do unregister 1
        = unregister 1
        "#,
    );
}

#[test]
fn registration_revoked() {
    check(
        r#"
        do register 1 a
        > [64,1,{},"a"]
        < [65, 1, 50]
        = register 1 a: done
        < [67, 0, {"registration": 7}]
        < [67, 0]
        < [67, 0, {"registration": 50, "reason": "wamp.error.unregistered"}]
        = revoked 1
        < [67, 0, {"registration": 50}]
        do unregister 1
        = unregister 1
        "#,
    );
}

#[test]
fn registration_refused() {
    check(
        r#"
        do register 1 a
        > [64,1,{},"a"]
        < [8, 64, 1, {}, "wamp.error.procedure_already_exists"]
        = register 1 a: wamp.error.procedure_already_exists
        "#,
    );
}

#[test]
fn registration_abandoned() {
    check(
        r#"
        do register 1 a
        > [64,1,{},"a"]
        do unregister 1
        = unregister 1
        < [65, 1, 50]
        > [66,2,50]
        = register 1 a: done
        < [67, 2]
        "#,
    );
}

#[test]
fn progressive_invocation() {
    check(
        r#"
        do register 1 a
        > [64,1,{},"a"]
        < [65, 1, 50]
        = register 1 a: done
        < [68, 1, 50, {"progress": true}, [1]]
        = invoked 1 1 more [1]
        < [68, 1, 50, {"progress": true}, [2]]
        = handler 1: more [2]
        < [68, 1, 50, {}, [3]]
        = handler 1: last [3]
        < [68, 1, 50, {}, [4]]
        = violation: expected an INVOCATION with a new request id, got INVOCATION 1, which is open and not progressive
        "#,
    );
}

#[test]
fn progressive_invocation_answered_early() {
    check(
        r#"
        do register 1 a
        > [64,1,{},"a"]
        < [65, 1, 50]
        = register 1 a: done
        < [68, 1, 50, {"progress": true}, [1]]
        = invoked 1 1 more [1]
        do yield 1
        > [70,1,{},[1]]
        = sent true
        < [68, 1, 50, {"progress": true}, [2]]
        < [68, 1, 50, {}, [3]]
        < [68, 1, 50, {}, [4]]
        = invoked 1 1 [4]
        "#,
    );
}

#[test]
fn subscriptions() {
    check(
        r#"
        do subscribe 1 a
        > [32,1,{},"a"]
        < [33, 1, 60]
        = subscribe 1 a: done
        < [36, 60, 900, {}, [1]]
        = event 900 for [1] [1]
        do subscribe 2 a
        > [32,2,{},"a"]
        < [33, 2, 60]
        = subscribe 2 a: done
        < [36, 60, 901, {}]
        = event 901 for [1, 2]
        do unsubscribe 1
        = unsubscribe 1
        < [36, 60, 902, {}]
        = event 902 for [2]
        do unsubscribe 2
        > [34,3,60]
        < [36, 60, 903, {}]
        < [35, 3]
        = unsubscribe 2: done
        < [36, 60, 904, {}]
        "#,
    );
}

#[test]
fn subscription_abandoned() {
    check(
        r#"
        do subscribe 1 a
        > [32,1,{},"a"]
        do unsubscribe 1
        = unsubscribe 1
        < [33, 1, 60]
        > [34,2,60]
        = subscribe 1 a: done
        < [35, 2]
        "#,
    );
}

#[test]
fn a_new_listener_keeps_the_subscription() {
    check(
        r#"
        do subscribe 1 a
        > [32,1,{},"a"]
        < [33, 1, 60]
        = subscribe 1 a: done
        do subscribe 2 a
        > [32,2,{},"a"]
        do unsubscribe 1
        = unsubscribe 1
        < [33, 2, 60]
        = subscribe 2 a: done
        < [36, 60, 900, {}]
        = event 900 for [2]
        "#,
    );
}

#[test]
fn a_new_listener_that_is_refused_gives_the_subscription_up() {
    check(
        r#"
        do subscribe 1 a
        > [32,1,{},"a"]
        < [33, 1, 60]
        = subscribe 1 a: done
        do subscribe 2 a
        > [32,2,{},"a"]
        do unsubscribe 1
        = unsubscribe 1
        < [8, 32, 2, {}, "wamp.error.not_authorized"]
        > [34,3,60]
        = subscribe 2 a: wamp.error.not_authorized
        < [35, 3]
        "#,
    );
}

#[test]
fn a_new_listener_behind_an_unsubscribe() {
    check(
        r#"
        do subscribe 1 a
        > [32,1,{},"a"]
        < [33, 1, 60]
        = subscribe 1 a: done
        do unsubscribe 1
        > [34,2,60]
        do subscribe 2 a
        > [32,3,{},"a"]
        < [35, 2]
        = unsubscribe 1: done
        < [33, 3, 60]
        = subscribe 2 a: done
        < [36, 60, 900, {}]
        = event 900 for [2]
        "#,
    );
}

#[test]
fn subscription_revoked() {
    check(
        r#"
        do subscribe 1 a
        > [32,1,{},"a"]
        < [33, 1, 60]
        = subscribe 1 a: done
        do subscribe 2 a
        > [32,2,{},"a"]
        < [33, 2, 60]
        = subscribe 2 a: done
        < [35, 0, {"subscription": 7}]
        < [35, 0]
        < [35, 0, {"subscription": 60, "reason": "com.reason"}]
        = revoked 1 2
        < [36, 60, 900, {}]
        do unsubscribe 1
        = unsubscribe 1
        "#,
    );
}

#[test]
fn an_unknown_interrupt_is_nothing() {
    check("< [69, 12, {}]");
}
