//! A simulation of nodes and log servers on machines that fail, from a seed.
//!
//! A machine holds a node and a server. Losing a machine ends both, and a cut link isolates both. After every run: no
//! confirmed message is lost, none is in the log twice or out of its order, each entry is of the owner of its epoch or
//! passed over by every reader, and the vhost has an owner again once the machines are back.
//!
//! `SEED=123 cargo test -p crosstie-ledger --test simulation` runs that seed alone, and `SEEDS=10000 …` that many.

#[path = "../support/mod.rs"]
mod support;

mod chance;
mod faults;
mod node;
mod oracle;
mod server;
mod world;

use std::env;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use oracle::Oracle;
use server::Sync;
use world::World;

/// Time with faults.
const FAULTS_MS: u64 = 40_000;

/// Time within which the vhost has an owner again: an election, a claim, and what was in flight.
const OWNED_WITHIN_MS: u64 = 90_000;

/// Time of an owner without faults. One that was deposed by a fault's end learns of it within an answer's time.
const REST_MS: u64 = 8000;

/// Reads of the log's end in a run. An owner whose append is not decided yet does not ask again and again.
const READS_MAX: u64 = 150;

struct Setup {
    machines: usize,
    replicas: usize,
    syncs: &'static [Sync],
}

const ALWAYS: Sync = Sync::Always;
const SOMETIMES: Sync = Sync::Sometimes;

fn begin(setup: &Setup, seed: u64) -> World {
    World::new(seed, setup.machines, setup.replicas, setup.syncs)
}

/// One run, held against what is promised.
fn run(setup: &Setup, seed: u64) -> Oracle {
    let mut world = begin(setup, seed);
    world.run(FAULTS_MS);
    world.heal();
    let healed = world.now;
    let before = world.oracle.confirmed();
    while world.oracle.confirmed() == before {
        world.run(world.now + 100);
        let waited = world.now - healed;
        assert!(waited < OWNED_WITHIN_MS, "no owner after {waited} ms");
    }
    world.run(world.now + REST_MS);
    let owners = world.nodes.iter().filter(|node| node.term.is_some());
    assert!(owners.count() <= 1, "two owners without a fault");
    world.oracle.finish(&world.servers);
    let reads = world.oracle.reads;
    assert!(reads < READS_MAX, "the log's end was read {reads} times");
    world.oracle
}

/// The seeds that the environment asks for.
#[expect(
    clippy::disallowed_methods,
    reason = "a failed run is repeated, and more are run, without a change"
)]
fn chosen(seeds: u64) -> Range<u64> {
    let number = |name: &str| env::var(name).ok()?.parse().ok();
    match (number("SEED"), number("SEEDS")) {
        (Some(seed), _) => seed..seed + 1,
        (None, many) => 0..many.unwrap_or(seeds),
    }
}

/// Runs seeds. A run of many has met what the ledger is made for.
fn run_all(name: &str, setup: &Setup, seeds: u64) {
    let chosen = chosen(seeds);
    let is_many = chosen.end - chosen.start >= seeds;
    let mut sum = Oracle::default();
    for seed in chosen {
        let done = catch_unwind(AssertUnwindSafe(|| run(setup, seed)));
        match done {
            Ok(oracle) => sum.add(&oracle),
            Err(why) => {
                eprintln!("{name}: seed {seed} fails");
                resume_unwind(why);
            }
        }
    }
    eprintln!("{name}: {sum}");
    if is_many {
        assert!(sum.confirmed() > 50 * seeds, "few messages");
        assert!(sum.owners > seeds && sum.deposed > 0, "few owners");
        assert!(sum.late > 0, "no entry of a former owner was late");
        assert!(sum.handed > 0, "no vhost was handed over");
        assert!(sum.purged > 0, "no log was purged");
        assert!(sum.deep > 0, "no queue was deep");
        assert!(sum.fetched > 0, "no deep queue was written again");
    }
}

#[test]
fn three_machines() {
    let setup = Setup {
        machines: 3,
        replicas: 3,
        syncs: &[ALWAYS; 3],
    };
    run_all("three machines", &setup, 120);
}

#[test]
fn three_machines_one_of_which_does_not_sync() {
    let setup = Setup {
        machines: 3,
        replicas: 3,
        syncs: &[ALWAYS, ALWAYS, SOMETIMES],
    };
    run_all("one does not sync", &setup, 80);
}

#[test]
fn five_machines_with_three_servers() {
    let setup = Setup {
        machines: 5,
        replicas: 3,
        syncs: &[ALWAYS; 3],
    };
    run_all("five machines", &setup, 60);
}

#[test]
fn three_nodes_with_one_server() {
    let setup = Setup {
        machines: 3,
        replicas: 1,
        syncs: &[ALWAYS],
    };
    run_all("one server", &setup, 80);
}

#[test]
fn a_vhost_whose_servers_mostly_do_not_sync_has_no_owner() {
    let setup = Setup {
        machines: 3,
        replicas: 3,
        syncs: &[ALWAYS, SOMETIMES, SOMETIMES],
    };
    for seed in 0..10 {
        let mut world = begin(&setup, seed);
        world.heal();
        world.run(30_000);
        assert_eq!(world.oracle.owners, 0, "seed {seed}");
    }
}
