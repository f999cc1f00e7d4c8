//! Plays many seeds of a vhost and its store, which crashes. `SIM_SEED` plays that one alone and
//! prints all that it did; `SIM_SEEDS` and `SIM_OPERATIONS` say how many there are of each.

use std::collections::BTreeSet;

use crosstie_sim::queues::VhostSimulation;

#[test]
fn a_vhost_does_what_the_model_allows_and_loses_nothing_that_was_committed() {
    let number = |name: &str| {
        std::env::var(name)
            .ok()
            .and_then(|text| text.parse::<u64>().ok())
    };
    let operations = number("SIM_OPERATIONS").unwrap_or(400) as usize;
    let seeds = match number("SIM_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("SIM_SEEDS").unwrap_or(200),
    };
    let alone = seeds.end - seeds.start == 1;
    let mut seen = BTreeSet::new();
    for seed in seeds {
        match VhostSimulation::new(seed).run(operations) {
            Ok(kinds) => seen.extend(kinds),
            Err(failure) if alone => panic!("{}\n{failure}", failure.log.join("\n")),
            Err(failure) => panic!("{failure}"),
        }
    }
    if alone {
        return;
    }
    // What never happens is not tested: if this fails, the drawing has become too tame.
    let missing: Vec<_> = EXPECTED
        .iter()
        .filter(|kind| !seen.contains(**kind))
        .collect();
    assert!(
        missing.is_empty(),
        "no run had {missing:?}; they had {seen:?}"
    );
}

const EXPECTED: [&str; 19] = [
    "basic.ack",
    "basic.cancel",
    "basic.cancel-ok",
    "basic.consume-ok",
    "basic.deliver",
    "basic.get-empty",
    "basic.get-ok",
    "basic.nack",
    "basic.qos-ok",
    "basic.recover-ok",
    "basic.return",
    "confirm.select-ok",
    "exchange.declare-ok",
    "exchange.delete-ok",
    "queue.bind-ok",
    "queue.declare-ok",
    "queue.delete-ok",
    "queue.purge-ok",
    "queue.unbind-ok",
];
