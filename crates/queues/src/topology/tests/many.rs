//! Thousands of bindings, compared with what a plain search finds.

use crosstie_amqp::Table;
use crosstie_amqp::method::{ExchangeDeclare, QueueBind, QueueUnbind};
use crosstie_auth::Permissions;

use super::super::{Caller, Topology};
use crate::keys::OfQueue;
use crate::slab::Slab;
use crate::{Journal, QueueKey, VhostLimits};

/// Numbers from a seed, as long as they are asked for (splitmix64).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }

    fn words(&mut self, words: &[&str], words_max: u64) -> String {
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

struct World {
    topology: Topology,
    journal: Journal,
    keys: Slab<OfQueue, ()>,
}

impl World {
    fn new() -> Self {
        let mut world = Self {
            topology: Topology::new("/".into(), &limits(), 7),
            journal: Journal::default(),
            keys: Slab::new(),
        };
        let method = ExchangeDeclare {
            exchange: "t",
            kind: "topic",
            ..ExchangeDeclare::default()
        };
        let permissions = Permissions::all();
        let caller = caller(&permissions);
        let (topology, journal) = (&mut world.topology, &mut world.journal);
        let declared = topology.declare_exchange(&caller, &method, journal);
        declared.expect("an exchange");
        world
    }

    fn bind(&mut self, pattern: &str) -> (String, QueueKey) {
        let key = self.keys.insert(());
        let queue = format!("q{}", key.number());
        self.topology
            .add_queue(queue.as_str().into(), key, false, 0);
        self.bind_again(&queue, pattern);
        (queue, key)
    }

    fn bind_again(&mut self, queue: &str, routing_key: &str) {
        let method = QueueBind {
            queue,
            exchange: "t",
            routing_key,
            ..QueueBind::default()
        };
        let permissions = Permissions::all();
        let (topology, journal) = (&mut self.topology, &mut self.journal);
        let bound = topology.bind_queue(&caller(&permissions), &method, |_| Ok(()), journal);
        bound.expect("a binding");
    }

    fn unbind(&mut self, queue: &str, routing_key: &str) {
        let method = QueueUnbind {
            queue,
            exchange: "t",
            routing_key,
            ..QueueUnbind::default()
        };
        let permissions = Permissions::all();
        let (topology, journal) = (&mut self.topology, &mut self.journal);
        let unbound = topology.unbind_queue(&caller(&permissions), &method, |_| Ok(()), journal);
        unbound.expect("no binding");
    }

    fn route(&mut self, key: &str) -> Vec<QueueKey> {
        let mut found = Vec::new();
        let exchange = self.topology.exchange("t").expect("an exchange");
        let topology = &mut self.topology;
        topology.route(exchange, key, Table::default(), &mut found);
        found.sort();
        found
    }
}

fn caller(permissions: &Permissions) -> Caller<'_> {
    Caller {
        user: "u",
        permissions,
        method: (50, 20),
    }
}

#[test]
fn random_patterns_match_what_a_search_finds() {
    let mut numbers = Numbers(5);
    let mut world = World::new();
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
            let words = split(&key);
            let matching = bound.iter().filter(|b| matches(&split(&b.0), &words));
            let mut expected: Vec<_> = matching.map(|(.., key)| *key).collect();
            expected.sort();
            assert_eq!(world.route(&key), expected, "key {key:?}");
        }
    }
    for (pattern, queue, _) in bound {
        world.unbind(&queue, &pattern);
    }
    assert_eq!(world.topology.binding_count(), 0);
    assert_eq!(world.route("a.b"), []);
}

/// By following each possibility this would take longer than the tests have.
#[test]
fn hostile_patterns_take_no_exponential_time() {
    let mut world = World::new();
    let pattern = ["#.a"; 60].join(".");
    let (_, key) = world.bind(&pattern);
    let a = ["a"; 127].join(".");
    assert_eq!(world.route(&a), [key]);
    assert_eq!(world.route(&(a + ".b")), []);
}

#[test]
fn ten_thousand_bindings_are_one_walk() {
    let mut world = World::new();
    let (queue, key) = world.bind("room.*.temperature");
    for n in 0..10_000 {
        world.bind_again(&queue, &format!("room.{n}.#"));
        world.bind_again(&queue, &format!("house.{n}.*.light"));
    }
    assert_eq!(world.route("room.77.temperature"), [key]);
    assert_eq!(world.route("house.77.kitchen.light"), [key]);
    assert_eq!(world.route("house.77.light"), []);
    world.topology.remove_queue(key, &mut world.journal);
    assert_eq!(world.topology.binding_count(), 0);
    assert_eq!(world.route("room.77.temperature"), []);
}

fn limits() -> VhostLimits {
    VhostLimits {
        exchanges_max: 100,
        bindings_max: 1_000_000,
        ..VhostLimits::default()
    }
}
