//! Plays many seeds of delayed messages.

use crosstie_sim::queues::DelaySimulation;

#[test]
fn delayed_messages_are_neither_lost_nor_early_nor_twice() {
    crate::seeds_played::play(250, &EXPECTED, |seed, operations| {
        DelaySimulation::new(seed)?.run(operations)
    });
}

const EXPECTED: [&str; 9] = [
    "commit", "crash", "declare", "delete", "fail", "get", "pass", "publish", "refused",
];
