//! Exchanges and queues that are deleted with more bindings than are taken away at once.

use super::script::check_within;
use crate::VhostLimits;

#[test]
fn deleted_entities_match_nothing() {
    check_within(
        &VhostLimits::default(),
        "
queue q
exchange d direct durable
times 1000 bind q d k#
delete d
counts
  7 exchanges 744 bindings 1 queues
bindings
  '' Queue(\"q\") 'q'
exchange d direct durable
route d k7
bind q d k7
route d k7
  q
delete d if_unused
  406 PRECONDITION_FAILED - exchange 'd' in vhost '/' in use
clear
counts
  8 exchanges 1 bindings 1 queues
route d k7
  q
drop q
counts
  8 exchanges 0 bindings 0 queues
",
    );
}

#[test]
fn a_message_that_finds_only_deleted_entities_takes_the_alternate() {
    check_within(
        &VhostLimits::default(),
        "
queue q
queue other
exchange others fanout
bind other others ''
exchange d direct alternate-exchange=others
exchange to direct
times 600 bind q d k#
times 600 bind_exchange to d e#
route d k1
  q
route d e1
drop q
delete to
route d k1
  other
route d e1
  other
clear
route d k1
  other
route d e1
  other
counts
  9 exchanges 1 bindings 1 queues
",
    );
}

#[test]
fn an_auto_delete_exchange_goes_with_the_last_binding() {
    check_within(
        &VhostLimits::default(),
        "
queue q
exchange first fanout auto_delete
exchange second fanout auto_delete
times 600 bind_exchange second first k#
times 600 bind q second k#
drop q
exchanges
  first fanout
  second fanout
clear
exchanges
counts
  7 exchanges 0 bindings 0 queues
",
    );
}

/// Both ends of a binding may be deleted before it is taken away, and be the same exchange.
#[test]
fn bindings_between_deleted_entities_are_removed_once() {
    check_within(
        &VhostLimits::default(),
        "
queue q
exchange a topic
exchange b headers
times 600 bind_exchange a a round.#.*
times 600 bind_exchange b a to.#.b
times 600 bind_exchange a b '' n=#
times 600 bind q a to.#.q
times 600 bind q b '' x-match=any n=# m=1
delete a
drop q
delete b
counts
  7 exchanges 2232 bindings 0 queues
clear
counts
  7 exchanges 0 bindings 0 queues
",
    );
}
