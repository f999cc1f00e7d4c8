//! Playing many seeds of a simulation. `SIM_SEED` plays that one alone and prints all that it did;
//! `SIM_SEEDS` and `SIM_OPERATIONS` say how many there are of each.

use std::collections::BTreeSet;

use crosstie_sim::Failure;

/// Plays each seed for so many operations, unless the environment says otherwise; every kind that
/// is `expected` must have happened in one of them.
pub(crate) fn play(
    operations: usize,
    expected: &[&str],
    run: impl Fn(u64, usize) -> Result<BTreeSet<String>, Failure>,
) {
    let number = |name: &str| {
        std::env::var(name)
            .ok()
            .and_then(|text| text.parse::<u64>().ok())
    };
    let operations = number("SIM_OPERATIONS").map_or(operations, |number| number as usize);
    let seeds = match number("SIM_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("SIM_SEEDS").unwrap_or(200),
    };
    let alone = seeds.end - seeds.start == 1;
    let mut seen = BTreeSet::new();
    for seed in seeds {
        match run(seed, operations) {
            Ok(kinds) => seen.extend(kinds),
            Err(failure) if alone => panic!("{}\n{failure}", failure.log.join("\n")),
            Err(failure) => panic!("{failure}"),
        }
    }
    if alone {
        return;
    }
    // What never happens is not tested: if this fails, the drawing has become too tame.
    let missing: Vec<_> = expected
        .iter()
        .filter(|kind| !seen.contains(**kind))
        .collect();
    assert!(
        missing.is_empty(),
        "no run had {missing:?}; they had {seen:?}"
    );
}
