//! Arguments of `queue.declare`.

use super::check;

/// What is wrong with each of these is said of a queue `q`.
fn refused(rows: &[(&str, &str)]) {
    for (words, expected) in rows {
        check(&format!(
            "declare q {words}\n  406 PRECONDITION_FAILED - {expected}"
        ));
    }
}

/// Values that no queue may have.
const REFUSED: &[(&str, &str)] = &[
    (
        "x-expires=0",
        "invalid arg 'x-expires' for queue 'q' in vhost '/': {value_zero,0}",
    ),
    (
        "x-expires=315360000001",
        "invalid arg 'x-expires' for queue 'q' in vhost '/': {value_too_large,315360000001}",
    ),
    (
        "x-message-ttl=315360000001",
        "invalid arg 'x-message-ttl' for queue 'q' in vhost '/': {value_too_large,315360000001}",
    ),
    (
        "x-max-priority=256",
        "invalid arg 'x-max-priority' for queue 'q' in vhost '/': {max_value_exceeded,256}",
    ),
    (
        "x-dead-letter-exchange=5",
        "invalid type 'signedint' for arg 'x-dead-letter-exchange' in queue 'q' in vhost '/'",
    ),
    (
        "x-dead-letter-routing-key=k",
        "invalid arg 'x-dead-letter-routing-key' for queue 'q' in vhost '/': routing_key_but_no_dlx_defined",
    ),
    (
        "x-dead-letter-routing-key=5",
        "invalid arg 'x-dead-letter-routing-key' for queue 'q' in vhost '/': {unacceptable_type,signedint}",
    ),
    (
        "x-overflow=foo",
        "invalid arg 'x-overflow' for queue 'q' in vhost '/': invalid_overflow",
    ),
    (
        "x-overflow=void",
        "invalid arg 'x-overflow' for queue 'q' in vhost '/': {unacceptable_type,void}",
    ),
    (
        "x-queue-mode=foo",
        "invalid arg 'x-queue-mode' for queue 'q' in vhost '/': \"unsupported queue mode 'foo'\"",
    ),
    (
        "x-queue-version=3",
        "invalid arg 'x-queue-version' for queue 'q' in vhost '/': \"unsupported queue version '3'\"",
    ),
    (
        "x-queue-version=a",
        "invalid arg 'x-queue-version' for queue 'q' in vhost '/': \"expected integer, got longstr\"",
    ),
    (
        "x-queue-type=foo",
        "invalid arg 'x-queue-type' for queue 'q' in vhost '/': \"unsupported queue type 'foo'\"",
    ),
    (
        "x-queue-type=foo x-message-ttl=-5",
        "invalid arg 'x-queue-type' for queue 'q' in vhost '/': \"unsupported queue type 'foo'\"",
    ),
    (
        "x-queue-type=5",
        "invalid arg 'x-queue-type' for queue 'q' in vhost '/': {unacceptable_type,signedint}",
    ),
    (
        "x-single-active-consumer=5",
        "invalid arg 'x-single-active-consumer' for queue 'q' in vhost '/': {unacceptable_type,signedint}",
    ),
    (
        "x-message-ttl=-5 x-expires=-1",
        "invalid arg 'x-expires' for queue 'q' in vhost '/': {value_negative,-1}",
    ),
];

/// Values that a queue of its kind, or with its flags, may not have.
const REFUSED_OF_KIND: &[(&str, &str)] = &[
    (
        "x-delivery-limit=5",
        "invalid arg 'x-delivery-limit' for queue 'q' in vhost '/' of queue type rabbit_classic_queue",
    ),
    (
        "x-max-age=1D durable",
        "invalid arg 'x-max-age' for queue 'q' in vhost '/' of queue type rabbit_classic_queue",
    ),
    (
        "x-dead-letter-strategy=at-least-once",
        "invalid arg 'x-dead-letter-strategy' for queue 'q' in vhost '/' of queue type rabbit_classic_queue",
    ),
    (
        "x-queue-type=quorum",
        "invalid property 'non-durable' for queue 'q' in vhost '/'",
    ),
    (
        "x-queue-type=quorum durable exclusive",
        "invalid property 'exclusive-owner' for queue 'q' in vhost '/'",
    ),
    (
        "x-queue-type=quorum exclusive auto_delete",
        "invalid property 'auto-delete' for queue 'q' in vhost '/'",
    ),
    (
        "x-queue-type=quorum exclusive x-message-ttl=-5",
        "invalid arg 'x-message-ttl' for queue 'q' in vhost '/': {value_negative,-5}",
    ),
    (
        "x-queue-type=quorum durable x-queue-mode=lazy x-message-ttl=-5",
        "invalid arg 'x-message-ttl' for queue 'q' in vhost '/': {value_negative,-5}",
    ),
    (
        "x-queue-type=quorum durable x-max-priority=5",
        "invalid arg 'x-max-priority' for queue 'q' in vhost '/' of queue type rabbit_quorum_queue",
    ),
    (
        "x-queue-type=quorum durable x-queue-mode=lazy",
        "invalid arg 'x-queue-mode' for queue 'q' in vhost '/' of queue type rabbit_quorum_queue",
    ),
    (
        "x-queue-type=quorum durable x-dead-letter-strategy=foo",
        "invalid arg 'x-dead-letter-strategy' for queue 'q' in vhost '/': invalid_dlx_strategy",
    ),
    (
        "x-queue-type=quorum durable x-max-in-memory-length=-5",
        "invalid arg 'x-max-in-memory-length' for queue 'q' in vhost '/': {value_negative,-5}",
    ),
    (
        "x-queue-type=quorum durable x-quorum-initial-group-size=0",
        "invalid arg 'x-quorum-initial-group-size' for queue 'q' in vhost '/': {value_zero,0}",
    ),
    (
        "x-queue-type=quorum durable x-queue-leader-locator=foo",
        "invalid arg 'x-queue-leader-locator' for queue 'q' in vhost '/': invalid_queue_locator_arg",
    ),
];

#[test]
fn integers_that_cannot_be() {
    let integers = [
        "x-expires",
        "x-message-ttl",
        "x-max-length",
        "x-max-length-bytes",
    ];
    for name in integers.into_iter().chain(["x-max-priority"]) {
        for (value, kind) in [("five", "longstr"), ("true", "bool"), ("void", "void")] {
            refused(&[(
                &format!("{name}={value}"),
                &format!(
                    "invalid arg '{name}' for queue 'q' in vhost '/': \"expected integer, got {kind}\""
                ),
            )]);
        }
        refused(&[(
            &format!("{name}=-1"),
            &format!("invalid arg '{name}' for queue 'q' in vhost '/': {{value_negative,-1}}"),
        )]);
    }
}

#[test]
fn values_that_cannot_be() {
    refused(REFUSED);
    refused(REFUSED_OF_KIND);
    check(
        "
declare amq.z x-expires=-1
  403 ACCESS_REFUSED - queue name 'amq.z' contains reserved prefix 'amq.*'
",
    );
}

#[test]
fn values_that_can_be() {
    for words in [
        "",
        "x-expires=1",
        "x-expires=315360000000",
        "x-message-ttl=0",
        "x-message-ttl=long:4294967296",
        "x-max-length=0 x-max-length-bytes=4611686018427387904",
        "x-max-priority=0",
        "x-max-priority=255",
        "x-dead-letter-exchange=''",
        "x-dead-letter-exchange=not-there-yet x-dead-letter-routing-key=k",
        "x-overflow=drop-head",
        "x-overflow=reject-publish",
        "x-overflow=reject-publish-dlx",
        "x-queue-mode=lazy x-queue-version=2",
        "x-queue-type=classic exclusive auto_delete",
        "x-single-active-consumer=false",
        "x-ha-policy=all x-foo=void",
        "durable x-queue-type=quorum x-delivery-limit=5",
        "durable x-queue-type=quorum x-delivery-limit=-1",
        "durable x-queue-type=quorum x-message-ttl=1000 x-expires=10000",
        "durable x-queue-type=quorum x-max-length=5 x-max-length-bytes=5",
        "durable x-queue-type=quorum x-max-in-memory-length=5 x-quorum-initial-group-size=3",
        "durable x-queue-type=quorum x-queue-leader-locator=client-local",
        "durable x-queue-type=quorum x-dead-letter-exchange=a x-dead-letter-strategy=at-least-once",
    ] {
        check(&format!("declare q {words}\ndeclare q {words}"));
    }
}

#[test]
fn arguments_of_streams() {
    for words in [
        "x-max-age=1h",
        "x-max-length-bytes=5 x-stream-max-segment-size-bytes=3000000000",
        "x-initial-cluster-size=3 x-queue-leader-locator=balanced",
        "x-stream-filter-size-bytes=16",
        "x-stream-filter-size-bytes=255",
    ] {
        let stream = format!("declare q durable x-queue-type=stream {words}");
        check(&format!("{stream}\n{stream}"));
    }
    check(
        "
declare q durable x-queue-type=stream x-max-age=1.5h
  406 PRECONDITION_FAILED - invalid arg 'x-max-age' for queue 'q' in vhost '/': invalid_max_age
declare q durable x-queue-type=stream x-stream-max-segment-size-bytes=long:3000000001
  406 PRECONDITION_FAILED - Exceeded max value for x-stream-max-segment-size-bytes
declare q durable x-queue-type=stream x-stream-max-segment-size-bytes=0
  406 PRECONDITION_FAILED - invalid arg 'x-stream-max-segment-size-bytes' for queue 'q' in vhost '/': {value_zero,0}
declare q durable x-queue-type=stream x-stream-filter-size-bytes=15
  406 PRECONDITION_FAILED - invalid arg 'x-stream-filter-size-bytes' for queue 'q' in vhost '/': expected 16 to 255, got 15
declare q durable x-queue-type=stream x-stream-filter-size-bytes=256
  406 PRECONDITION_FAILED - invalid arg 'x-stream-filter-size-bytes' for queue 'q' in vhost '/': expected 16 to 255, got 256
declare q durable x-queue-type=quorum x-stream-filter-size-bytes=16
  406 PRECONDITION_FAILED - invalid arg 'x-stream-filter-size-bytes' for queue 'q' in vhost '/' of queue type rabbit_quorum_queue
declare q durable x-queue-type=stream x-max-length=5
  406 PRECONDITION_FAILED - invalid arg 'x-max-length' for queue 'q' in vhost '/' of queue type rabbit_stream_queue
declare q x-queue-type=stream
  406 PRECONDITION_FAILED - invalid property 'non-durable' for queue 'q' in vhost '/'
declare q durable x-queue-type=quorum x-max-age=1h
  406 PRECONDITION_FAILED - invalid arg 'x-max-age' for queue 'q' in vhost '/' of queue type rabbit_quorum_queue
",
    );
}

/// Every argument that a queue declared again must have as it is.
const ALL_ARGUMENTS: &str = "x-message-ttl=1000 x-expires=100000 x-max-length=5 x-max-length-bytes=50 \
    x-overflow=reject-publish x-dead-letter-exchange=a x-dead-letter-routing-key=k \
    x-single-active-consumer=true x-queue-mode=lazy x-queue-version=2";

/// Each of them, another value, and its name, value and kind in the broker's words.
#[rustfmt::skip]
const ARGUMENTS: [(&str, &str, &str, &str, &str); 10] = [
    ("x-message-ttl=1000", "1001", "x-message-ttl", "1000", "signedint"),
    ("x-expires=100000", "long:100001", "x-expires", "100000", "signedint"),
    ("x-max-length=5 ", "6", "x-max-length", "5", "signedint"),
    ("x-max-length-bytes=50", "51", "x-max-length-bytes", "50", "signedint"),
    ("x-overflow=reject-publish", "drop-head", "x-overflow", "reject-publish", "longstr"),
    ("x-dead-letter-exchange=a", "b", "x-dead-letter-exchange", "a", "longstr"),
    ("x-dead-letter-routing-key=k", "l", "x-dead-letter-routing-key", "k", "longstr"),
    ("x-single-active-consumer=true", "false", "x-single-active-consumer", "true", "bool"),
    ("x-queue-mode=lazy", "default", "x-queue-mode", "lazy", "longstr"),
    ("x-queue-version=2", "1", "x-queue-version", "2", "signedint"),
];

#[test]
fn a_queue_declared_again_is_the_same() {
    let one = format!("declare one {ALL_ARGUMENTS}\n");
    check(&format!(
        "{one}declare one x-foo=1 x-queue-type=classic {ALL_ARGUMENTS}"
    ));
    for (argument, other, name, current, kind) in ARGUMENTS {
        let less = ALL_ARGUMENTS.replace(argument, "");
        let shown = other.trim_start_matches("long:");
        check(&format!(
            "{one}declare one {less} {name}={other}
  406 PRECONDITION_FAILED - inequivalent arg '{name}' for queue 'one' in vhost '/': received '{shown}' but current is '{current}'
declare one {less}
  406 PRECONDITION_FAILED - inequivalent arg '{name}' for queue 'one' in vhost '/': received none but current is the value '{current}' of type '{kind}'
"
        ));
        if name != "x-dead-letter-routing-key" {
            check(&format!(
                "declare none\ndeclare none {argument}
  406 PRECONDITION_FAILED - inequivalent arg '{name}' for queue 'none' in vhost '/': received the value '{current}' of type '{kind}' but current is none
"
            ));
        }
    }
}

#[test]
fn arguments_that_a_queue_was_declared_without() {
    check(
        "
declare q
declare q durable auto_delete
  406 PRECONDITION_FAILED - inequivalent arg 'durable' for queue 'q' in vhost '/': received 'true' but current is 'false'
declare q auto_delete x-expires=1
  406 PRECONDITION_FAILED - inequivalent arg 'auto_delete' for queue 'q' in vhost '/': received 'true' but current is 'false'
declare q x-foo=1
declare q x-queue-type=classic
declare q x-queue-type=quorum
  406 PRECONDITION_FAILED - inequivalent arg 'x-queue-type' for queue 'q' in vhost '/': received the value 'quorum' of type 'longstr' but current is none
declare q x-queue-type=quorum x-expires=5
  406 PRECONDITION_FAILED - inequivalent arg 'x-expires' for queue 'q' in vhost '/': received the value '5' of type 'signedint' but current is none
declare q x-queue-type=5
  406 PRECONDITION_FAILED - inequivalent arg 'x-queue-type' for queue 'q' in vhost '/': received the value '5' of type 'signedint' but current is none
declare q x-message-ttl=-5
  406 PRECONDITION_FAILED - inequivalent arg 'x-message-ttl' for queue 'q' in vhost '/': received the value '-5' of type 'signedint' but current is none
declare q x-message-ttl=[a,b]
  406 PRECONDITION_FAILED - inequivalent arg 'x-message-ttl' for queue 'q' in vhost '/': received the value '[{longstr,<<\"a\">>},{longstr,<<\"b\">>}]' of type 'array' but current is none
declare q x-message-ttl={a:1}
  406 PRECONDITION_FAILED - inequivalent arg 'x-message-ttl' for queue 'q' in vhost '/': received the value '[{<<\"a\">>,signedint,1}]' of type 'table' but current is none
",
    );
}

#[test]
fn arguments_that_a_queue_was_declared_with() {
    check(
        "
declare t x-message-ttl=1000
declare t x-message-ttl=long:1000
declare t x-message-ttl=void
  406 PRECONDITION_FAILED - inequivalent arg 'x-message-ttl' for queue 't' in vhost '/': received none but current is '1000'
declare u durable x-queue-type=quorum x-delivery-limit=5
declare u durable x-queue-type=quorum x-delivery-limit=6
  406 PRECONDITION_FAILED - inequivalent arg 'x-delivery-limit' for queue 'u' in vhost '/': received '6' but current is '5'
declare u durable
  406 PRECONDITION_FAILED - inequivalent arg 'x-queue-type' for queue 'u' in vhost '/': received none but current is the value 'quorum' of type 'longstr'
declare u durable x-queue-type=foo
  406 PRECONDITION_FAILED - inequivalent arg 'x-queue-type' for queue 'u' in vhost '/': received 'foo' but current is 'quorum'
declare u durable x-queue-type=quorum x-delivery-limit=5 x-queue-mode=lazy x-max-age=1D
",
    );
}

/// RabbitMQ compares what arguments hold, and not their types.
#[test]
fn equal_arguments_of_different_types_are_equivalent() {
    check(
        "
declare o x-overflow=reject-publish
declare o x-overflow=bytes:reject-publish
declare o x-overflow=bytes:drop-head
  406 PRECONDITION_FAILED - inequivalent arg 'x-overflow' for queue 'o' in vhost '/': received 'drop-head' but current is 'reject-publish'
declare p x-overflow=bytes:drop-head
  406 PRECONDITION_FAILED - invalid arg 'x-overflow' for queue 'p' in vhost '/': {unacceptable_type,binary}
declare c x-queue-type=classic
declare c x-queue-type=bytes:classic
declare c
declare n
declare n x-queue-type=bytes:classic
  406 PRECONDITION_FAILED - inequivalent arg 'x-queue-type' for queue 'n' in vhost '/': received the value 'classic' of type 'binary' but current is none
declare q durable x-queue-type=quorum x-dead-letter-exchange=dx x-dead-letter-routing-key=k
declare q durable x-queue-type=bytes:quorum x-dead-letter-exchange=bytes:dx x-dead-letter-routing-key=bytes:k
declare l x-max-length=5
declare l x-max-length=byte:5
declare l x-max-length=long:5
declare l x-max-length=timestamp:5
declare l x-max-length=double:5
  406 PRECONDITION_FAILED - inequivalent arg 'x-max-length' for queue 'l' in vhost '/': received '5.0' but current is '5'
declare d durable x-queue-type=quorum x-delivery-limit=float:5
declare d durable x-queue-type=quorum x-delivery-limit=double:5
declare m x-queue-master-locator=bytes:min-masters
declare m x-queue-master-locator=min-masters
",
    );
}
