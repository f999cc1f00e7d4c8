//! What patterns cost at worst: who would make a message dearer than its bound is refused, and what
//! ordinary users bind is not.

use crosstie_amqp::{Table, TableBuf, Value};
use crosstie_auth::Permissions;

use super::super::Routed;
use super::many::{World, caller};
use crate::VhostLimits;

const STEPS_MAX: u64 = 10_000;

/// Binds patterns to one queue, as many as are taken; returns how many that were.
fn bind(world: &mut World, patterns: impl Iterator<Item = String>) -> usize {
    let (queue, _) = world.add_queue();
    let mut bind = |pattern: String| world.try_bind(&queue, "t", &pattern, Table::default());
    let mut taken = 0;
    for pattern in patterns {
        match bind(pattern) {
            Ok(()) => taken += 1,
            Err(fault) => {
                let text = "limit of the steps that a message may take in exchange 't' in vhost \
                            '/' (exchange_steps_max, 10000) is reached";
                assert!(fault.text.contains(text), "{}", fault.text);
                break;
            }
        }
    }
    taken
}

/// Every choice of one of two words, so often.
fn choices(words: u32, two: [&'static str; 2]) -> impl Iterator<Item = String> {
    (0..1_u32 << words).map(move |bits| {
        let word = |place| two[(bits >> place & 1) as usize];
        (0..words).map(word).collect::<Vec<_>>().join(".")
    })
}

#[test]
fn a_binding_that_makes_keys_too_costly_is_refused() {
    type Patterns = Box<dyn Iterator<Item = String>>;
    let numbered = |text: &'static str| -> Patterns {
        Box::new((0..10_000).map(move |n| text.replace('N', &n.to_string())))
    };
    let repeated = |word: &'static str| -> Patterns {
        Box::new((1..120).map(move |times| vec![word; times].join(".")))
    };
    // Patterns; as many as are taken at least and at most; keys that are as dear as any.
    let rows: Vec<(Patterns, std::ops::RangeInclusive<usize>, String)> = vec![
        // As ordinary users have them: all are taken.
        (numbered("room.N.#"), 10_000..=10_000, "room.7.light".into()),
        (
            numbered("house.N.*.light.*"),
            10_000..=10_000,
            "house.7.a.light.b".into(),
        ),
        (numbered("*.N.*.#"), 10_000..=10_000, "a.7.b.c".into()),
        (numbered("#.N"), 10_000..=10_000, "a.b.c.7".into()),
        (numbered("#.N.#"), 10_000..=10_000, vec!["7"; 128].join(".")),
        (
            numbered("tenant.N.#.error"),
            10_000..=10_000,
            "tenant.7.a.b.error".into(),
        ),
        // As somebody has them who wants to be dear.
        (
            Box::new(choices(14, ["a", "*"]).map(|pattern| pattern + ".#.z")),
            10..=100,
            vec!["a"; 128].join("."),
        ),
        (
            Box::new(choices(16, ["a", "*"])),
            1_000..=10_000,
            vec!["a"; 16].join("."),
        ),
        (
            Box::new(choices(7, ["a", "#"])),
            1..=60,
            vec!["a"; 128].join("."),
        ),
        (repeated("#.a"), 3..=20, vec!["a"; 128].join(".")),
        (repeated("#.*"), 3..=20, ".".repeat(255)),
        (numbered("#.a.#.N"), 1..=10_000, vec!["a"; 128].join(".")),
        (
            Box::new((0..64).flat_map(|a| (0..64).map(move |b| format!("#.{a}.#.{b}.#")))),
            10..=2_000,
            (0..80).map(|n| n.to_string()).collect::<Vec<_>>().join("."),
        ),
    ];
    for (row, (patterns, taken_expected, key)) in rows.into_iter().enumerate() {
        let mut world = World::new(&VhostLimits::default());
        let taken = bind(&mut world, patterns);
        assert!(taken_expected.contains(&taken), "row {row}: {taken} taken");
        let key = &key[..key.len().min(255)];
        let (_, steps) = world.route_from("t", key, Table::default());
        assert!(steps <= STEPS_MAX + 2 + taken as u64, "row {row}: {steps}");
        // What was refused has left nothing.
        assert_eq!(world.topology.binding_count(), taken);
        assert!(world.steps("t") <= STEPS_MAX);
    }
}

#[test]
fn a_binding_that_makes_headers_too_costly_is_refused() {
    let never = Value::LongString(b"never");
    // Of a pattern its number, and whether all of them are taken.
    type Row = (fn(i32) -> TableBuf, bool);
    let rows: [Row; 6] = [
        (|n| TableBuf::new().with("tenant", Value::I32(n)), true),
        (
            |n| {
                let table = TableBuf::new().with("kind", Value::LongString(b"report"));
                table.with("tenant", Value::I32(n))
            },
            true,
        ),
        (
            |n| {
                let table = TableBuf::new().with("x-match", Value::LongString(b"any"));
                let table = table.with("everybody", Value::Bool(true));
                table.with("tenant", Value::I32(n))
            },
            true,
        ),
        (
            |n| {
                let table = TableBuf::new().with("a", Value::I32(n / 120));
                table.with("b", Value::I32(n % 120))
            },
            true,
        ),
        (
            |n| {
                let table = TableBuf::new().with("a", Value::Void);
                table.with(&format!("b{n}"), Value::Void)
            },
            false,
        ),
        (
            |n| TableBuf::new().with(&format!("b{n}"), Value::I32(1)),
            false,
        ),
    ];
    for (row, (pattern, is_taken)) in rows.into_iter().enumerate() {
        let mut world = World::new(&VhostLimits::default());
        let (queue, _) = world.add_queue();
        let mut bind = |n| world.try_bind(&queue, "h", "", pattern(n).as_table());
        let refused = (0..12_000).find_map(|n| bind(n).err());
        assert_eq!(refused.is_none(), is_taken, "row {row}: {refused:?}");
        assert!(world.steps("h") <= STEPS_MAX);
        let fields = 10_000;
        let message = (0..fields).fold(TableBuf::new(), |table, n| {
            table.with(&format!("b{n}"), Value::I32(1))
        });
        let message = message.with("a", never);
        let (_, steps) = world.route_from("h", "", message.as_table());
        assert!(
            steps <= STEPS_MAX + fields + 12_000 / 4,
            "row {row}: {steps}"
        );
    }
}

#[test]
fn exchanges_that_others_lead_to_are_counted_together() {
    let mut world = World::new(&VhostLimits::default());
    let (queue, _) = world.add_queue();
    // Each is a third of what there may be.
    let patterns = (0..6).map(|n| vec!["*"; n].join(".") + ".#.a");
    let patterns: Vec<String> = patterns.collect();
    let exchanges = ["t1", "t2", "t3", "t4", "t5"];
    for exchange in exchanges {
        world.declare(exchange, "topic", None).expect("an exchange");
        for pattern in &patterns {
            let bound = world.try_bind(&queue, exchange, pattern, Table::default());
            bound.expect("a binding");
        }
    }
    world.declare("f", "fanout", None).expect("an exchange");
    let bound = exchanges.map(|exchange| world.try_bind_exchange(exchange, "f").is_ok());
    assert_eq!(bound, [true, true, true, false, false]);
    // No binding leads there, but messages would.
    let refused = world
        .declare("late", "fanout", Some("t4"))
        .map_err(|f| f.text);
    let text = "cannot declare exchange 'late' in vhost '/': limit of the steps that a message may";
    assert!(refused.is_err_and(|found| found.contains(text)));
    world
        .declare("late", "fanout", Some("t1"))
        .expect("an exchange");
    let key = vec!["a"; 128].join(".");
    let (_, steps) = world.route_from("f", &key, Table::default());
    assert!(steps <= STEPS_MAX + 3 * 20, "{steps}");
    // Nor does what they have grow, though each has room of its own.
    let mut bind_more = |exchange| {
        (6..10).all(|n| {
            let pattern = vec!["*"; n].join(".") + ".#.a";
            let bound = world.try_bind(&queue, exchange, &pattern, Table::default());
            bound.is_ok()
        })
    };
    assert!(!bind_more("t2"));
    assert!(bind_more("t5"));
}

#[test]
fn copies_share_the_bound_of_a_message() {
    let mut world = World::new(&VhostLimits::default());
    bind(&mut world, choices(8, ["a", "*"]));
    let exchange = world.topology.exchange("t").expect("an exchange");
    let key = ["a"; 8].join(".");
    let mut check = |copies: usize| {
        let bytes = copies_of(&key, copies);
        let headers = Table::from_bytes(&bytes).expect("a table");
        let permissions = Permissions::all();
        let caller = caller(&permissions);
        let mut queues = Vec::new();
        world
            .topology
            .check_copies(&caller, exchange, Routed::plain(&key, headers), &mut queues)
            .map_err(|fault| fault.text)
    };
    assert_eq!(check(0), Ok(()));
    assert_eq!(check(10), Ok(()));
    let text = "PRECONDITION_FAILED - cannot route a message to all of CC and BCC: limit of the \
                steps that a message may take in vhost '/' (twice exchange_steps_max, 20000) is \
                reached";
    assert_eq!(check(450), Err(text.into()));
    let steps = u64::from(world.topology.take_steps());
    assert!(steps < 4 * STEPS_MAX, "{steps}");
}

/// A table with one field: `CC`.
fn copies_of(key: &str, copies: usize) -> Vec<u8> {
    let length = |bytes: usize| (bytes as u32).to_be_bytes();
    let mut bytes = b"\x02CCA".to_vec();
    bytes.extend(length(copies * (5 + key.len())));
    for _ in 0..copies {
        bytes.push(b'S');
        bytes.extend(length(key.len()));
        bytes.extend(key.as_bytes());
    }
    bytes
}

#[test]
fn words_and_fields_of_patterns_are_bounded() {
    let mut world = World::new(&VhostLimits {
        pattern_nodes_max: 6,
        ..VhostLimits::default()
    });
    let (queue, _) = world.add_queue();
    let mut bind = |exchange, key, fields: &[&str]| {
        let fields = fields.iter().fold(TableBuf::new(), |table, name| {
            table.with(name, Value::I32(1))
        });
        let bound = world.try_bind(&queue, exchange, key, fields.as_table());
        bound.map_err(|fault| fault.text)
    };
    assert_eq!(bind("t", "a.b.*", &[]), Ok(()));
    // What begins alike is there once, and what has no wildcard is no tree.
    assert_eq!(bind("t", "a.b.#", &[]), Ok(()));
    assert_eq!(bind("t", "a.b.c.d.e.f.g", &[]), Ok(()));
    assert_eq!(bind("h", "", &["one"]), Ok(()));
    assert_eq!(bind("h", "", &["one", "two"]), Ok(()));
    let text = "PRECONDITION_FAILED - cannot bind queue 'q0' in vhost '/': limit of words and fields \
                of patterns in vhost '/' (pattern_nodes_max, 6) is reached";
    assert_eq!(bind("h", "", &["three"]), Err(text.into()));
    assert_eq!(bind("t", "a.*", &[]), Err(text.into()));
    assert_eq!(world.topology.pattern_nodes(), 6);
}

/// An ending queue costs what its bindings are, counted.
#[test]
fn removing_the_bindings_of_a_queue_is_counted() {
    let mut world = World::new(&VhostLimits::default());
    let (queue, key) = world.add_queue();
    for n in 0..1_000 {
        let bound = world.try_bind(&queue, "t", &format!("a.{n}.#"), Table::default());
        bound.expect("a binding");
    }
    world.topology.take_steps();
    world.topology.remove_queue(key, &mut world.journal);
    while world.topology.clear_one(&mut world.journal) {}
    assert_eq!(world.topology.binding_count(), 0);
    assert_eq!(world.topology.pattern_nodes(), 0);
    let steps = world.topology.take_steps();
    assert!((1_000..20_000).contains(&steps), "{steps}");
}
