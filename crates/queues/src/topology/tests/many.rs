//! Thousands of bindings, compared with a plain search.

use crosstie_amqp::method::ExchangeDeclare;
use crosstie_amqp::{Table, TableBuf, Value};
use crosstie_auth::Permissions;
use crosstie_collections::{Slab, SplitMix};

use super::super::{BindingRequest, Caller, Routed, Topology};
use crate::keys::OfQueue;
use crate::{Fault, Journal, QueueKey, VhostLimits};

/// Numbers from a seed.
pub(super) struct Numbers(SplitMix);

impl Numbers {
    pub(super) fn new(seed: u64) -> Self {
        Self(SplitMix(seed))
    }

    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.0.number() % bound
    }

    pub(super) fn words(&mut self, words: &[&str], words_max: u64) -> String {
        let count = self.below(words_max + 1);
        let word = |numbers: &mut Self| words[numbers.below(words.len() as u64) as usize];
        let words: Vec<&str> = (0..count).map(|_| word(self)).collect();
        words.join(".")
    }
}

/// The definition, as plain as it can be written.
fn matches(pattern: &[&str], key: &[&str]) -> bool {
    match (pattern, key) {
        ([], []) => true,
        (["#", rest @ ..], key) => (0..=key.len()).any(|n| matches(rest, &key[n..])),
        ([first, rest @ ..], [word, key @ ..]) if *first == "*" || first == word => {
            matches(rest, key)
        }
        _ => false,
    }
}

fn split(text: &str) -> Vec<&str> {
    match text {
        "" => Vec::new(),
        text => text.split('.').collect(),
    }
}

/// An exchange `t` of type topic and `h` of type headers, and as many queues as are asked for.
pub(super) struct World {
    pub(super) topology: Topology,
    pub(super) journal: Journal,
    keys: Slab<OfQueue, ()>,
}

impl World {
    pub(super) fn new(limits: &VhostLimits) -> Self {
        let mut world = Self {
            topology: Topology::new("/".into(), limits, 7),
            journal: Journal::default(),
            keys: Slab::new(),
        };
        for (name, kind) in [("t", "topic"), ("h", "headers")] {
            world.declare(name, kind, None).expect("an exchange");
        }
        world
    }

    pub(super) fn declare(
        &mut self,
        exchange: &str,
        kind: &str,
        alternate: Option<&str>,
    ) -> Result<(), Fault> {
        let mut arguments = TableBuf::new();
        if let Some(alternate) = alternate {
            let alternate = Value::LongString(alternate.as_bytes());
            arguments = arguments.with("alternate-exchange", alternate);
        }
        let method = ExchangeDeclare {
            exchange,
            kind,
            arguments: arguments.as_table(),
            ..ExchangeDeclare::default()
        };
        let permissions = Permissions::all();
        let (topology, journal) = (&mut self.topology, &mut self.journal);
        topology.declare_exchange(&caller(&permissions), &method, journal)
    }

    pub(super) fn add_queue(&mut self) -> (String, QueueKey) {
        let key = self.keys.insert(());
        let queue = format!("q{}", key.number());
        self.topology
            .add_queue(queue.as_str().into(), key, false, 0);
        (queue, key)
    }

    fn bind(&mut self, pattern: &str) -> (String, QueueKey) {
        let (queue, key) = self.add_queue();
        self.bind_again(&queue, pattern);
        (queue, key)
    }

    fn bind_again(&mut self, queue: &str, routing_key: &str) {
        self.try_bind(queue, "t", routing_key, Table::default())
            .expect("a binding");
    }

    pub(super) fn try_bind(
        &mut self,
        queue: &str,
        exchange: &str,
        routing_key: &str,
        arguments: Table<'_>,
    ) -> Result<(), Fault> {
        let asked = BindingRequest::queue(queue, exchange, routing_key, arguments);
        let permissions = Permissions::all();
        let (topology, journal) = (&mut self.topology, &mut self.journal);
        let bound = topology.bind(&caller(&permissions), &asked, |_| Ok(()), journal);
        bound.map(drop)
    }

    pub(super) fn try_bind_exchange(
        &mut self,
        destination: &str,
        source: &str,
    ) -> Result<(), Fault> {
        let asked = BindingRequest::exchange(destination, source, "", Table::default());
        let permissions = Permissions::all();
        let (topology, journal) = (&mut self.topology, &mut self.journal);
        let bound = topology.bind(&caller(&permissions), &asked, |_| Ok(()), journal);
        bound.map(drop)
    }

    fn unbind(&mut self, queue: &str, routing_key: &str) {
        self.unbind_from(queue, "t", routing_key, Table::default());
    }

    pub(super) fn unbind_from(
        &mut self,
        queue: &str,
        exchange: &str,
        routing_key: &str,
        arguments: Table<'_>,
    ) {
        let asked = BindingRequest::queue(queue, exchange, routing_key, arguments);
        let permissions = Permissions::all();
        let (topology, journal) = (&mut self.topology, &mut self.journal);
        let unbound = topology.unbind(&caller(&permissions), &asked, |_| Ok(()), journal);
        unbound.expect("no binding");
    }

    fn route(&mut self, key: &str) -> Vec<QueueKey> {
        self.route_from("t", key, Table::default()).0
    }

    /// The queues in order, and the steps it took.
    pub(super) fn route_from(
        &mut self,
        exchange: &str,
        key: &str,
        headers: Table<'_>,
    ) -> (Vec<QueueKey>, u64) {
        let mut found = Vec::new();
        let exchange = self.topology.exchange(exchange).expect("an exchange");
        self.topology.take_steps();
        let message = Routed::plain(key, headers);
        self.topology.route(exchange, message, &mut found);
        found.sort();
        (found, u64::from(self.topology.take_steps()))
    }

    /// What the patterns of an exchange cost at most.
    pub(super) fn steps(&self, exchange: &str) -> u64 {
        let key = self.topology.exchange(exchange).expect("an exchange");
        self.topology.exchanges.find(key).map_or(0, |e| e.steps())
    }
}

pub(super) fn caller(permissions: &Permissions) -> Caller<'_> {
    Caller {
        user: "u",
        permissions,
        method: (50, 20),
    }
}

#[test]
fn random_patterns_match_like_a_plain_search() {
    let mut numbers = Numbers::new(5);
    let mut world = World::new(&limits());
    let mut bound: Vec<(String, String, QueueKey)> = Vec::new();
    for round in 0..4_000 {
        let pattern = numbers.words(&["a", "b", "c", "*", "#", ""], 6);
        let (queue, key) = world.bind(&pattern);
        bound.push((pattern, queue, key));
        if numbers.below(3) > 0 {
            let gone = numbers.below(bound.len() as u64) as usize;
            let (pattern, queue, _) = bound.swap_remove(gone);
            world.unbind(&queue, &pattern);
        }
        if round % 10 == 0 {
            let key = numbers.words(&["a", "b", "c", "d", "*", ""], 7);
            let steps_max = world.steps("t");
            let words = split(&key);
            let matching = bound.iter().filter(|b| matches(&split(&b.0), &words));
            let mut expected: Vec<_> = matching.map(|(.., key)| *key).collect();
            expected.sort();
            let (found, steps) = world.route_from("t", &key, Table::default());
            assert_eq!(found, expected, "key {key:?}");
            // Beside what it finds: the exchange, and the key.
            let found_max = bound.len() as u64;
            assert!(steps <= steps_max + 2 + found_max, "key {key:?}: {steps}");
        }
    }
    let nodes = world.topology.pattern_nodes();
    assert!(nodes > 500, "{nodes}");
    for (pattern, queue, _) in bound {
        world.unbind(&queue, &pattern);
    }
    assert_eq!(world.topology.binding_count(), 0);
    assert_eq!(world.topology.pattern_nodes(), 0);
    assert_eq!(world.steps("t"), 0);
    assert_eq!(world.route("a.b"), []);
}

/// By following each possibility this would take longer than the tests have.
#[test]
fn hostile_patterns_take_no_exponential_time() {
    let mut world = World::new(&limits());
    let pattern = ["#.a"; 60].join(".");
    let (_, key) = world.bind(&pattern);
    let a = ["a"; 127].join(".");
    assert_eq!(world.route(&a), [key]);
    assert_eq!(world.route(&(a + ".b")), []);
}

#[test]
fn ten_thousand_bindings_are_one_walk() {
    let mut world = World::new(&limits());
    let (queue, key) = world.bind("room.*.temperature");
    for n in 0..10_000 {
        world.bind_again(&queue, &format!("room.{n}.#"));
        world.bind_again(&queue, &format!("house.{n}.*.light"));
    }
    assert_eq!(world.route("room.77.temperature"), [key]);
    assert_eq!(world.route("house.77.kitchen.light"), [key]);
    assert_eq!(world.route("house.77.light"), []);
    world.topology.remove_queue(key, &mut world.journal);
    assert_eq!(world.route("room.77.temperature"), []);
    while world.topology.clear_one(&mut world.journal) {}
    assert_eq!(world.topology.binding_count(), 0);
    assert_eq!(world.route("room.77.temperature"), []);
}

fn limits() -> VhostLimits {
    VhostLimits {
        exchanges_max: 100,
        bindings_max: 1_000_000,
        exchange_steps_max: usize::MAX / 4,
        ..VhostLimits::default()
    }
}
