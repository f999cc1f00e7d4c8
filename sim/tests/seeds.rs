//! Plays many seeds. `SIM_SEED` plays that one alone and prints all that it did; `SIM_SEEDS` and `SIM_OPERATIONS` say
//! how many there are of each.

use std::collections::BTreeSet;

use crosstie_sim::Simulation;

#[test]
fn the_realm_sends_what_the_model_expects() {
    let number = |name: &str| {
        std::env::var(name)
            .ok()
            .and_then(|text| text.parse::<u64>().ok())
    };
    let operations = number("SIM_OPERATIONS").unwrap_or(500) as usize;
    let seeds = match number("SIM_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("SIM_SEEDS").unwrap_or(200),
    };
    let alone = seeds.end - seeds.start == 1;
    let mut seen = BTreeSet::new();
    for seed in seeds {
        match Simulation::new(seed).run(operations) {
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

const EXPECTED: [&str; 27] = [
    "Closed",
    "Event",
    "Interrupt",
    "Invocation",
    "Published",
    "Registered",
    "Result",
    "Subscribed",
    "Unregistered",
    "Unsubscribed",
    "com.simulated.error",
    "crosstie.error.calls_max",
    "crosstie.error.registrations_max",
    "crosstie.error.subscriptions_max",
    "wamp.error.canceled",
    "wamp.error.feature_not_supported",
    "wamp.error.invalid_argument",
    "wamp.error.invalid_uri",
    "wamp.error.no_available_callee",
    "wamp.error.no_such_procedure",
    "wamp.error.no_such_registration",
    "wamp.error.no_such_subscription",
    "wamp.error.not_authorized",
    "wamp.error.option_disallowed.disclose_me",
    "wamp.error.procedure_already_exists",
    "wamp.error.procedure_exists_with_different_invocation_policy",
    "wamp.error.timeout",
];
