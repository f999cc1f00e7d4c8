//! Plays many seeds of nodes that share a vhost's log.

mod seeds_played;

use crosstie_sim::ledger::LedgerRun;

#[test]
fn nothing_confirmed_is_lost_and_a_deposed_owner_confirms_nothing() {
    seeds_played::play(600, &EXPECTED, |seed, operations| {
        LedgerRun::new(seed).run(operations)
    });
}

const EXPECTED: [&str; 15] = [
    "Append",
    "Committed",
    "Deposed",
    "Owning",
    "Purge",
    "Read",
    "Released",
    "behind",
    "confirmed",
    "crash Claiming",
    "crash Owning",
    "crash Recovering",
    "purged",
    "recovered",
    "unfinished",
];
