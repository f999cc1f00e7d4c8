//! Plays many seeds of a realm and its sessions.

use crosstie_sim::Simulation;

#[test]
fn the_realm_sends_the_messages_of_the_model() {
    crate::seeds_played::play(500, &EXPECTED, |seed, operations| {
        Simulation::new(seed).run(operations)
    });
}

const EXPECTED: [&str; 42] = [
    "Closed",
    "Event",
    "Event, retained",
    "Goodbye",
    "Interrupt",
    "Invocation",
    "MetaEvent",
    "MetaResult",
    "Published",
    "Registered",
    "Result",
    "Result, disclosed",
    "Subscribed",
    "Unregistered",
    "Unregistered, revoked",
    "Unsubscribed",
    "Unsubscribed, revoked",
    "com.simulated.error",
    "crossbar.error.max_concurrency_reached",
    "crosstie.error.calls_max",
    "crosstie.error.definitions_max",
    "crosstie.error.realm_definitions_max",
    "crosstie.error.registrations_max",
    "crosstie.error.subscriptions_max",
    "crosstie.error.testaments_max",
    "wamp.error.authorization_failed",
    "wamp.error.canceled",
    "wamp.error.feature_not_supported",
    "wamp.error.invalid_argument",
    "wamp.error.invalid_uri",
    "wamp.error.no_available_callee",
    "wamp.error.no_such_procedure",
    "wamp.error.no_such_registration",
    "wamp.error.no_such_session",
    "wamp.error.no_such_subscription",
    "wamp.error.not_authorized",
    "wamp.error.option_disallowed.disclose_me",
    "wamp.error.procedure_already_exists",
    "wamp.error.procedure_exists_with_different_invocation_policy",
    "wamp.error.testament_error",
    "wamp.error.timeout",
    "wamp.error.unavailable",
];
