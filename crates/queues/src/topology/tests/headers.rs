//! Thousands of bindings of a headers exchange, compared with what asking each of them finds.

use crosstie_amqp::{TableBuf, Value};

use super::super::headers::{Headers, HeadersPattern};
use super::many::{Numbers, World};
use crate::VhostLimits;

const MODES: [&str; 4] = ["all", "any", "all-with-x", "any-with-x"];
const NAMES: [&str; 5] = ["a", "b", "c", "x-a", "x-b"];

fn value(numbers: &mut Numbers) -> Value<'static> {
    // What is equal though it is not the same, and what hashes alike though it is not equal.
    let large = (1 << 60) + numbers.below(3) as i64;
    let values = [
        Value::Void,
        Value::I32(1),
        Value::U8(1),
        Value::F64(1.0),
        Value::I64(large),
        Value::F64((1_u64 << 60) as f64),
        Value::F64(f64::NAN),
        Value::F32(-0.0),
        Value::Timestamp(0),
        Value::Bool(true),
        Value::LongString(b"one"),
        Value::ByteArray(b"one"),
        Value::LongString(b""),
        Value::Decimal { scale: 0, value: 1 },
    ];
    values[numbers.below(values.len() as u64) as usize]
}

fn fields(numbers: &mut Numbers, fields_max: u64) -> TableBuf {
    let count = numbers.below(fields_max + 1);
    (0..count).fold(TableBuf::new(), |table, _| {
        let name = NAMES[numbers.below(NAMES.len() as u64) as usize];
        table.with(name, value(numbers))
    })
}

#[test]
fn random_headers_match_as_each_pattern_alone() {
    let mut numbers = Numbers::new(11);
    let mut world = World::new(&VhostLimits {
        exchange_steps_max: usize::MAX / 4,
        ..VhostLimits::default()
    });
    let mut bound = Vec::new();
    for round in 0..2_000 {
        let mode = MODES[numbers.below(4) as usize];
        let arguments = fields(&mut numbers, 4);
        let arguments = arguments.with("x-match", Value::LongString(mode.as_bytes()));
        let (queue, key) = world.add_queue();
        let made = world.try_bind(&queue, "h", "", arguments.as_table());
        made.expect("a binding");
        bound.push((arguments, queue, key));
        if numbers.below(3) > 0 {
            let gone = numbers.below(bound.len() as u64) as usize;
            let (arguments, queue, _) = bound.swap_remove(gone);
            world.unbind_from(&queue, "h", "", arguments.as_table());
        }
        if round % 10 == 0 {
            // Names twice, and as many as are looked up in another way.
            let message = fields(&mut numbers, if round % 20 == 0 { 6 } else { 40 });
            let headers = Headers::new(message.as_table(), &world.topology.hasher);
            let is_matching = |arguments: &TableBuf| {
                let pattern = HeadersPattern::parse(arguments).expect("a pattern");
                pattern.matches(&headers)
            };
            let matching = bound.iter().filter(|b| is_matching(&b.0));
            let mut expected: Vec<_> = matching.map(|(.., key)| *key).collect();
            expected.sort();
            let steps_max = world.steps("h");
            let (found, steps) = world.route_from("h", "", message.as_table());
            assert_eq!(found, expected, "headers {message:?}");
            let found_max = bound.len() as u64;
            assert!(
                steps <= steps_max + 1 + 40 + found_max,
                "{message:?}: {steps}"
            );
        }
    }
    for (arguments, queue, _) in bound {
        world.unbind_from(&queue, "h", "", arguments.as_table());
    }
    assert_eq!(world.topology.pattern_nodes(), 0);
    assert_eq!(world.steps("h"), 0);
}
