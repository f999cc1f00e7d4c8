//! Where messages go.

use super::check;

/// Whether a key (or headers) reaches a queue by a binding.
fn rows(kind: &str, rows: &[(&str, &str, bool)]) {
    for (binding, message, is_reached) in rows {
        let expected = if *is_reached { "\n  q" } else { "" };
        check(&format!(
            "exchange x {kind}\nqueue q\nbind q x {binding}\nroute x {message}{expected}"
        ));
    }
}

#[test]
fn topics_match_as_rabbitmq_has_it() {
    rows(
        "topic",
        &[
            ("''", "''", true),
            ("*", "''", false),
            ("#", "''", true),
            ("#.#", "''", true),
            ("*", "a", true),
            ("*", "a.b", false),
            ("a.*", "a", false),
            ("a.*", "a.", true),
            ("a.#", "a", true),
            ("a.#", "a.b.c", true),
            ("#.c", "a.b.c", true),
            ("#.c", "c", true),
            ("*.#.c", "c", false),
            ("*.#.c", "a.c", true),
            ("#.*", "a", true),
            ("#.*", "''", false),
            ("a..b", "a..b", true),
            ("a.*.b", "a..b", true),
            ("*.*", ".", true),
            ("*", ".", false),
            ("#", ".", true),
            (".", ".", true),
            (".", "''", false),
            ("''", ".", false),
            ("a.**", "a.x", false),
            ("a*", "ab", false),
            ("a.b", "a.*", false),
            ("a.*", "a.*", true),
            ("a.b.#.#", "a.b", true),
            ("#.a.#.a.#", "a.x", false),
            ("#.a.#.a.#", "a.x.a", true),
            ("A", "a", false),
            ("*.*.#", "a", false),
            ("*.*.#", "a.b", true),
        ],
    );
}

#[test]
fn headers_match_as_rabbitmq_has_it() {
    rows(
        "headers",
        &[
            ("''", "k", true),
            ("''", "k a=1", true),
            ("'' x-match=any", "k", false),
            ("'' x-match=any", "k a=1", false),
            ("'' a=1", "k", false),
            ("'' a=1", "k a=1", true),
            ("'' a=1", "k a=2", false),
            ("'' a=1", "k a=1 b=2", true),
            ("'' a=1 b=2", "k a=1", false),
            ("'' x-match=any a=1 b=2", "k a=1", true),
            ("'' x-match=any a=1 b=2", "k b=2 c=3", true),
            ("'' x-match=any a=1 b=2", "k b=1", false),
            ("'' x-match=any a=1", "k", false),
            ("'' a=void", "k a=7", true),
            ("'' a=void", "k a=void", true),
            ("'' a=void", "k b=7", false),
            ("'' x-match=any a=void", "k a=x", true),
            ("'' a=one", "k a=1", false),
            ("'' a=1", "k a=true", false),
            ("'' a=true", "k a=true", true),
            ("'' a=1", "k a=long:1", true),
            ("'' a=byte:5", "k a=5", true),
            ("'' a=float:5", "k a=byte:5", true),
            ("'' a=5", "k a=double:5", true),
            ("'' a=double:5", "k a=float:5", true),
            ("'' a=5", "k a=double:5.5", false),
            ("'' a=5", "k a=timestamp:5", true),
            ("'' a=decimal:5", "k a=5", false),
            ("'' a=decimal:5", "k a=decimal:5", true),
            ("'' a=bytes:x", "k a=x", true),
            ("'' a=x", "k a=bytes:y", false),
            ("'' a=5", "k a=void", false),
            ("'' a=1099511627776", "k a=1099511627776", true),
            ("'' a={b:1}", "k a={b:1}", true),
            ("'' a=[b,c]", "k a=[b,c]", true),
            ("'' x-a=1", "k x-a=2", true),
            ("'' x-match=all-with-x x-a=1", "k x-a=2", false),
            ("'' x-match=all-with-x x-a=1", "k x-a=1", true),
            ("'' x-match=any-with-x x-a=1", "k x-a=1", true),
            ("'' x-match=any x-a=1", "k x-a=1", false),
            ("'' x-match=all-with-x", "k x-a=1", true),
            ("'' x-match=any-with-x", "k x-a=1", false),
            ("'' a=1 x-a=2", "k a=1", true),
            ("'' x-match=all-with-x a=1", "k a=1 x-match=foo", true),
        ],
    );
    // As many fields as are looked up in another way.
    let many: String = (0..40).map(|n| format!(" h{n}={n}")).collect();
    rows(
        "headers",
        &[
            (&format!("'' h0=0 h7=7{many}"), &format!("k{many}"), true),
            ("'' h0=0 h39=39", &format!("k{many}"), true),
            ("'' h0=0 h39=40", &format!("k{many}"), false),
            ("'' h0=0 i=0", &format!("k{many}"), false),
        ],
    );
}

#[test]
fn every_queue_once() {
    check(
        "
exchange d direct
exchange f fanout
exchange t topic
queue q1
queue q2
queue q3
bind q1 d k
bind q2 d k
bind q3 d other
bind q1 t k.#
bind q1 t #.l
bind q1 t k.l
bind q2 t *.l
bind q1 f ''
bind q1 f again
route d k
  q1 q2
route d none
route t k.l
  q1 q2
route f anything
  q1
route '' q3
  q3
route '' none
route d none CC=[other] BCC=[k,k]
  q1 q2 q3
route '' none CC=[q1] BCC=[q1,q2,none]
  q1 q2
route d none CC=k
unbind q1 t k.l
unbind q1 t #.l
route t k.l
  q1 q2
unbind q1 t k.#
route t k.l
  q2
drop q2
route t k.l
route d k
  q1
",
    );
}

#[test]
fn exchanges_lead_to_exchanges() {
    check(
        "
exchange a direct
exchange b topic
exchange c fanout
queue q
bind_exchange b a k.l
bind_exchange c b k.*
bind_exchange a c ''
bind q c ''
route a k.l
  q
route a other
unbind_exchange c b k.*
route a k.l
",
    );
}

#[test]
fn alternates_take_unmatched_messages() {
    check(
        "
exchange late fanout
exchange a direct alternate-exchange=late
exchange dead direct
exchange self direct alternate-exchange=self
exchange default direct alternate-exchange=''
exchange missing direct alternate-exchange=nowhere
exchange first direct alternate-exchange=a
queue q
queue p
bind q late ''
bind p a k
bind_exchange dead a other
route a k
  p
route a none
  q
route a other
route self k
route default q
route missing k
route first none
  q
route first k
  p
delete late
route a none
",
    );
}
