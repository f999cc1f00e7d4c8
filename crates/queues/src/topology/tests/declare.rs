//! Exchanges and bindings that may be, and that may not.

use super::check;

#[test]
fn an_exchange_declared_again_is_the_same() {
    check(
        "
exchange a direct
exchange a direct foo=1
exchange a topic durable auto_delete
  406 PRECONDITION_FAILED - inequivalent arg 'type' for exchange 'a' in vhost '/': received 'topic' but current is 'direct'
exchange a direct durable auto_delete internal
  406 PRECONDITION_FAILED - inequivalent arg 'durable' for exchange 'a' in vhost '/': received 'true' but current is 'false'
exchange a direct auto_delete internal
  406 PRECONDITION_FAILED - inequivalent arg 'auto_delete' for exchange 'a' in vhost '/': received 'true' but current is 'false'
exchange a direct internal alternate-exchange=zz
  406 PRECONDITION_FAILED - inequivalent arg 'internal' for exchange 'a' in vhost '/': received 'true' but current is 'false'
exchange a direct alternate-exchange=zz
  406 PRECONDITION_FAILED - inequivalent arg 'alternate-exchange' for exchange 'a' in vhost '/': received the value 'zz' of type 'longstr' but current is none
exchange a direct alternate-exchange=4
  406 PRECONDITION_FAILED - inequivalent arg 'alternate-exchange' for exchange 'a' in vhost '/': received the value '4' of type 'signedint' but current is none
exchange c fanout alternate-exchange=zz
exchange c fanout alternate-exchange=yy
  406 PRECONDITION_FAILED - inequivalent arg 'alternate-exchange' for exchange 'c' in vhost '/': received 'yy' but current is 'zz'
exchange c fanout
  406 PRECONDITION_FAILED - inequivalent arg 'alternate-exchange' for exchange 'c' in vhost '/': received none but current is the value 'zz' of type 'longstr'
exchange amq.direct direct durable
exchange amq.direct direct
  406 PRECONDITION_FAILED - inequivalent arg 'durable' for exchange 'amq.direct' in vhost '/': received 'false' but current is 'true'
exchange a fanout passive
exchange a nonsense passive
exchanges
  a direct
  c fanout
",
    );
}

#[test]
fn an_exchange_that_cannot_be() {
    check(
        "
exchange d x-jms-topic
  503 COMMAND_INVALID - unknown exchange type 'x-jms-topic'
exchange amq.d x-jms-topic
  503 COMMAND_INVALID - unknown exchange type 'x-jms-topic'
exchange amq.foo direct
  403 ACCESS_REFUSED - exchange name 'amq.foo' contains reserved prefix 'amq.*'
exchange amq.foo direct alternate-exchange=4
  403 ACCESS_REFUSED - exchange name 'amq.foo' contains reserved prefix 'amq.*'
exchange b direct alternate-exchange=5
  406 PRECONDITION_FAILED - invalid type 'signedint' for arg 'alternate-exchange' in exchange 'b' in vhost '/'
exchange b direct alternate-exchange=void
  406 PRECONDITION_FAILED - invalid type 'void' for arg 'alternate-exchange' in exchange 'b' in vhost '/'
exchange '' direct
  403 ACCESS_REFUSED - operation not permitted on the default exchange
exchange '' direct passive
  403 ACCESS_REFUSED - operation not permitted on the default exchange
exchange nope direct passive
  404 NOT_FOUND - no exchange 'nope' in vhost '/'
exchange amq.nope direct passive
  404 NOT_FOUND - no exchange 'amq.nope' in vhost '/'
exchanges
",
    );
}

#[test]
fn exchanges_are_deleted() {
    check(
        "
delete ''
  403 ACCESS_REFUSED - operation not permitted on the default exchange
delete amq.direct
  403 ACCESS_REFUSED - deletion of system exchange 'amq.direct' in vhost '/' not allowed
delete amq.nope
  403 ACCESS_REFUSED - deletion of system exchange 'amq.nope' in vhost '/' not allowed
delete nope
exchange a direct
exchange b direct
queue q
bind q a k
bind_exchange b a k
delete a if_unused
  406 PRECONDITION_FAILED - exchange 'a' in vhost '/' in use
delete b if_unused
bindings
  '' Queue(\"q\") 'q'
  'a' Queue(\"q\") 'k'
delete a
bindings
  '' Queue(\"q\") 'q'
publish a
  404 NOT_FOUND - no exchange 'a' in vhost '/'
counts
  7 exchanges 0 bindings 1 queues
",
    );
}

#[test]
fn bindings_need_both_ends() {
    check(
        "
exchange a direct
exchange b direct
queue q
bind q a k
bind q a k
bind nq a k
  404 NOT_FOUND - no queue 'nq' in vhost '/'
bind q na k
  404 NOT_FOUND - no exchange 'na' in vhost '/'
bind nq na k
  404 NOT_FOUND - no exchange 'na' in vhost '/'
bind q '' k
  403 ACCESS_REFUSED - operation not permitted on the default exchange
unbind q '' q
  403 ACCESS_REFUSED - operation not permitted on the default exchange
unbind q a k
unbind q a k
unbind nq a k
unbind q na k
bind_exchange nd a k
  404 NOT_FOUND - no exchange 'nd' in vhost '/'
bind_exchange a ns k
  404 NOT_FOUND - no exchange 'ns' in vhost '/'
bind_exchange nd ns k
  404 NOT_FOUND - no exchange 'ns' in vhost '/'
bind_exchange '' a k
  403 ACCESS_REFUSED - operation not permitted on the default exchange
bind_exchange a '' k
  403 ACCESS_REFUSED - operation not permitted on the default exchange
unbind_exchange nd a k
unbind_exchange a ns k
unbind_exchange a b k
bind_exchange b b k
bindings
  '' Queue(\"q\") 'q'
  'b' Exchange(\"b\") 'k'
",
    );
}

#[test]
fn the_order_of_arguments_makes_no_other_binding() {
    check(
        "
exchange a direct
queue q
bind q a k x=1 y=2
bind q a k y=2 x=1
bind q a k x=1
counts
  8 exchanges 2 bindings 1 queues
route a k
  q
unbind q a k y=2 x=1
route a k
  q
unbind q a k x=1
route a k
",
    );
}

#[test]
fn a_locked_queue_is_not_bound() {
    check(
        "
exchange a direct
queue q
bind q a k
lock q
bind q a k2
  405 RESOURCE_LOCKED - q is locked
bind q na k2
  404 NOT_FOUND - no exchange 'na' in vhost '/'
unbind q a k2
unbind q a k
  405 RESOURCE_LOCKED - q is locked
",
    );
}

#[test]
fn headers_exchanges_check_x_match() {
    check(
        "
exchange h headers
queue q
bind q h '' x-match=foo
  406 PRECONDITION_FAILED - Invalid x-match field value <<\"foo\">>; expected all, any, all-with-x, or any-with-x
bind q h '' x-match=1
  406 PRECONDITION_FAILED - Invalid x-match field type signedint (value 1); expected longstr
bind q h '' x-match=void
  406 PRECONDITION_FAILED - Invalid x-match field type void (value undefined); expected longstr
bind q h '' x-match={a:1}
  406 PRECONDITION_FAILED - Invalid x-match field type table (value [{<<\"a\">>,signedint,1}]); expected longstr
bind q h '' x-match=all-with-x
bind q h '' x-match=any-with-x
counts
  8 exchanges 2 bindings 1 queues
",
    );
}

#[test]
fn auto_delete_exchanges_go_with_their_last_binding() {
    check(
        "
exchange a1 fanout auto_delete
exchange a2 fanout auto_delete
queue q
unbind q a1 ''
bind q a2 ''
bind_exchange a2 a1 ''
exchanges
  a1 fanout
  a2 fanout
drop q
exchanges
exchange a1 fanout auto_delete
queue q
bind q a1 ''
bind q a1 k
unbind q a1 ''
exchanges
  a1 fanout
unbind q a1 k
exchanges
exchange a1 fanout auto_delete
exchange a2 fanout auto_delete
bind_exchange a1 a2 ''
bind_exchange a2 a1 ''
delete a1
exchanges
",
    );
}

#[test]
fn there_is_a_bound_to_everything() {
    check(
        "
exchange e1 direct
exchange e2 direct
exchange e3 direct
exchange e4 direct
exchange e5 direct
exchange e6 direct
exchange e7 direct
exchange e8 direct
exchange e9 direct
exchange e10 direct
exchange e11 direct
exchange e12 direct
exchange e13 direct
exchange e14 direct
  406 PRECONDITION_FAILED - cannot declare exchange 'e14' in vhost '/': exchange limit in vhost '/' (20) is reached
exchange e13 direct
queue q
bind q e1 1
bind q e1 2
bind q e1 3
bind q e1 4
bind q e1 5
bind q e1 6
bind q e1 7
bind q e1 8
bind q e1 9
bind q e1 10
bind q e1 11
  406 PRECONDITION_FAILED - cannot bind queue 'q' in vhost '/': binding limit in vhost '/' (10) is reached
bind q e1 10
unbind q e1 10
bind q e1 11
",
    );
}

#[test]
fn a_text_that_is_too_long_is_cut() {
    for (name, shown) in [
        ("e".repeat(255), "e".repeat(227)),
        ("ü".repeat(127), "ü".repeat(113)),
    ] {
        check(&format!(
            "publish {name}\n  404 NOT_FOUND - no exchange '{shown}..."
        ));
    }
}
