//! Plays many seeds of nodes that share a vhost's log.

use crosstie_sim::ledger::LedgerRun;

#[test]
fn nothing_confirmed_is_lost_and_a_deposed_owner_confirms_nothing() {
    crate::seeds_played::play(800, &EXPECTED, |seed, operations| {
        LedgerRun::new(seed).run(operations)
    });
}

/// A follower met a gap, and behind it another log's entry: it is to read the log from its front.
#[test]
fn a_gap_is_noticed_before_another_log() {
    LedgerRun::new(419).run(600).expect("no failure");
}

const EXPECTED: [&str; 18] = [
    "Append",
    "Committed",
    "Deposed",
    "Fetch",
    "Owning",
    "Purge",
    "Read",
    "Released",
    "behind",
    "confirmed",
    "crash Claiming",
    "crash Owning",
    "crash Recovering",
    "deep",
    "paged",
    "purged",
    "recovered",
    "unfinished",
];
