//! What is recorded, and what comes back of it. A store knows by itself of the bindings that go with an
//! exchange or a queue.

use super::check;

#[test]
fn durable_entities_are_recorded_and_restored() {
    check(
        "
exchange d direct durable
exchange t topic
exchange h headers durable auto_delete
queue dq durable
queue tq
journal
  + direct d
  + headers h
bind dq d k
bind dq d k
bind tq d k
bind dq t k
bind dq h '' x-match=any a=1
bind_exchange h d other
bind dq amq.topic k.*
journal
  + d -> Queue(\"dq\") by 'k'
  + h -> Queue(\"dq\") by ''
  + d -> Exchange(\"h\") by 'other'
  + amq.topic -> Queue(\"dq\") by 'k.*'
unbind dq d k
unbind dq d k
unbind tq d k
journal
  - d -> Queue(\"dq\") by 'k'
restart dq
exchanges
  d direct
  h headers
route d k
route d other a=1
  dq
route d other a=2
route amq.topic k.k
  dq
unbind dq h '' a=1 x-match=any
journal
  - h -> Queue(\"dq\") by ''
  - h
delete d
journal
  - d
drop dq
journal
restart
bindings
exchanges
",
    );
}

/// A transient queue held the exchange; a durable one comes only after the restart's records say
/// that the first durable one went.
#[test]
fn restoring_deletes_nothing_by_itself() {
    check(
        "
exchange a fanout durable auto_delete
queue d1 durable
queue d2 durable
queue t
bind d1 a ''
bind t a ''
unbind d1 a ''
bind d2 a ''
restart d1 d2
exchanges
  a fanout
route a ''
  d2
",
    );
}
