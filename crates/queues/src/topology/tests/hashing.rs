//! Exchanges that choose one of their bindings. The choices of `x-consistent-hash` and `x-modulus-hash` are those of
//! RabbitMQ 3.10.8.

use super::check;

#[test]
fn a_ring_has_places_by_weight_in_the_order_of_the_bindings() {
    check(
        "
exchange x x-consistent-hash
queue a
queue b
queue c
route x key-1
bind a x 1
route x key-1
  a
bind b x 2
bind c x 3
route x ''
  a
route x a
  b
route x key-1
  b
route x order-42
  b
route x 0123456789ab
  c
route x 0123456789abc
  b
route x naïve
  c
route x key-1 CC=[a,order-42]
  b
",
    );
}

#[test]
fn a_header_is_hashed_with_its_kind() {
    check(
        "
exchange x x-consistent-hash hash-header=h
queue a
queue b
queue c
bind a x 1
bind b x 1
bind c x 1
route x k
  b
route x other
  b
route x k h=a
  c
route x k h=5
  b
route x k h=''
  b
",
    );
}

#[test]
fn a_property_is_hashed_in_place_of_the_key() {
    check(
        "
exchange m x-consistent-hash hash-property=message_id
exchange c x-consistent-hash hash-property=correlation_id
exchange t x-consistent-hash hash-property=timestamp
queue a
queue b
queue c
bind a m 1
bind b m 2
bind c m 3
bind a c 1
bind b c 2
bind c c 3
bind a t 1
bind b t 2
bind c t 3
route m other message_id=order-42 correlation_id=0123456789ab
  b
route c other message_id=order-42 correlation_id=0123456789ab
  c
route t other timestamp=timestamp:1700000000
  c
route m 0123456789ab
  b
",
    );
}

/// A target that is bound twice has one share, by its first binding. It keeps a share as long as a binding leads to it,
/// unlike in RabbitMQ.
#[test]
fn a_target_is_on_the_ring_by_the_first_of_its_bindings() {
    check(
        "
exchange x x-consistent-hash
queue a
queue b
bind a x 1
bind b x 1
bind a x 9
route x key-1
  b
route x ''
  a
unbind b x 1
route x key-1
  a
bind b x 1
route x ''
  a
route x key-1
  b
unbind a x 1
route x key-1
  a
unbind a x 9
route x ''
  b
unbind b x 1
route x ''
",
    );
}

#[test]
fn the_order_of_the_bindings_survives_a_restart() {
    check(
        "
exchange x x-consistent-hash durable
queue c durable
queue b durable
queue a durable
bind c x 1
bind b x 2
bind a x 3
bind b x 1
journal
  + x-consistent-hash x
  + x -> Queue(\"c\") by '1' at 1
  + x -> Queue(\"b\") by '2' at 2
  + x -> Queue(\"a\") by '3' at 3
  + x -> Queue(\"b\") by '1' at 4
route x ''
  c
route x key-1
  b
route x 0123456789ab
  a
restart_backwards a b c
route x ''
  c
route x key-1
  b
route x 0123456789ab
  a
queue d durable
bind d x 1
journal
  + x -> Queue(\"d\") by '1' at 5
",
    );
}

#[test]
fn weights_are_whole_numbers() {
    check(
        "
exchange x x-consistent-hash
queue q
bind q x ''
  406 PRECONDITION_FAILED - The binding key must be an integer: <<>>
bind q x abc
  406 PRECONDITION_FAILED - The binding key must be an integer: <<\"abc\">>
bind q x 1.0
  406 PRECONDITION_FAILED - The binding key must be an integer: <<\"1.0\">>
bind q x +
  406 PRECONDITION_FAILED - The binding key must be an integer: <<\"+\">>
bind q x 0
  406 PRECONDITION_FAILED - The binding key must be greater than 0
bind q x -0
  406 PRECONDITION_FAILED - The binding key must be greater than 0
bind q x -3
  406 PRECONDITION_FAILED - The binding key must be greater than 0
bind q x 1000000001
  406 PRECONDITION_FAILED - The binding key must be at most 1000000000: <<\"1000000001\">>
bind q x 99999999999999999999999999
  406 PRECONDITION_FAILED - The binding key must be at most 1000000000: <<\"99999999999999999999999999\">>
bind q x +5
bind q x 05
bind q x 1000000000
unbind q x abc
route x k
  q
",
    );
}

#[test]
fn arguments_select_what_is_hashed() {
    check(
        "
exchange x x-consistent-hash hash-property=reply_to
  406 PRECONDITION_FAILED - Unsupported property: reply_to
exchange x x-consistent-hash hash-header=h hash-property=reply_to
  406 PRECONDITION_FAILED - hash-header and hash-property are mutually exclusive
exchange x x-consistent-hash hash-header=5
  406 PRECONDITION_FAILED - invalid type 'signedint' for arg 'hash-header': expected longstr
exchange x x-consistent-hash hash-header=h
exchange x x-consistent-hash hash-property=nope
exchange x direct
  406 PRECONDITION_FAILED - inequivalent arg 'type' for exchange 'x' in vhost '/': received 'direct' but current is ''x-consistent-hash''
exchange amq.x x-no-such
  503 COMMAND_INVALID - unknown exchange type 'x-no-such'
exchange h x-recent-history x-recent-history-length=0
  406 PRECONDITION_FAILED - Invalid argument 0, 'x-recent-history-length' must be a positive integer
exchange h x-recent-history x-recent-history-length=five
  406 PRECONDITION_FAILED - Invalid argument <<\"five\">>, 'x-recent-history-length' must be a positive integer
exchange h x-recent-history x-recent-history-length=true
  406 PRECONDITION_FAILED - Invalid argument true, 'x-recent-history-length' must be a positive integer
exchange h x-recent-history x-recent-history-length=1001
  406 PRECONDITION_FAILED - cannot declare exchange 'h' in vhost '/': a history of 1001 messages is longer than history_messages_max (1000)
exchange h x-recent-history x-recent-history-length=long:1000
",
    );
}

#[test]
fn the_hash_of_all_keys_modulo_the_number_of_bindings_is_a_place() {
    check(
        "
exchange x x-modulus-hash
queue a
queue b
queue c
bind c x ''
bind a x ''
bind b x ''
route x ''
  a
route x a
  a
route x key-1
  a
route x order-42
  c
route x 0123456789ab
  a
route x 0123456789abc
  a
route x naïve
  b
unbind a x ''
unbind b x ''
route x ''
  c
unbind c x ''
route x ''
",
    );
}

#[test]
fn an_exchange_on_the_ring_passes_messages_on() {
    check(
        "
exchange x x-consistent-hash
exchange f fanout
queue a
queue b
queue c
bind_exchange f x 1
bind c x 1
bind a f ''
bind b f ''
route x ''
  a b
route x key-1
  c
delete f
route x ''
  c
",
    );
}

#[test]
fn a_draw_finds_one_of_the_bindings() {
    check(
        "
exchange x x-random
route x k
queue a
bind a x ''
times 20 route x #
  aaaaaaaaaaaaaaaaaaaa
unbind a x ''
route x k
",
    );
}
