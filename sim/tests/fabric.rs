//! Plays many seeds of nodes on an engine, with faults and without.

use crosstie_sim::fabric::{Calls, Run, Setting};

fn play(settings: &[(usize, usize)], faults: bool) {
    let only = std::env::var("SIM_SEED").ok();
    let only: Option<u64> = only.map(|seed| seed.parse().expect("a seed is a number"));
    let mut crossed = 0;
    for seed in only.map_or(1..=20, |seed| seed..=seed) {
        for (nodes, servers) in settings {
            let setting = Setting {
                nodes: *nodes,
                servers: *servers,
                faults,
            };
            eprintln!("{setting:?}, SIM_SEED={seed}");
            crossed += Run::new(seed, setting).play(600);
        }
    }
    assert!(crossed > 0, "nothing crossed");
}

#[test]
fn without_faults_the_nodes_are_one_realm() {
    play(&[(1, 1), (2, 1), (2, 2), (3, 2), (4, 3)], false);
}

#[test]
fn with_faults_events_are_lost_and_nothing_else() {
    play(&[(2, 1), (2, 2), (3, 2), (4, 3)], true);
}

fn play_calls(settings: &[(usize, usize)], faults: bool) {
    let only = std::env::var("SIM_SEED").ok();
    let only: Option<u64> = only.map(|seed| seed.parse().expect("a seed is a number"));
    let mut answered = 0;
    for seed in only.map_or(1..=20, |seed| seed..=seed) {
        for (nodes, servers) in settings {
            let setting = Setting {
                nodes: *nodes,
                servers: *servers,
                faults,
            };
            eprintln!("calls, {setting:?}, SIM_SEED={seed}");
            answered += Calls::new(seed, setting).play(1_200);
        }
    }
    assert!(answered > 0, "nothing was answered");
}

#[test]
fn without_faults_calls_are_those_of_one_realm() {
    play_calls(&[(1, 1), (2, 1), (2, 2), (3, 2), (4, 3)], false);
}

#[test]
fn with_faults_calls_end_once_and_all_nodes_agree() {
    play_calls(&[(2, 1), (2, 2), (3, 2), (4, 3)], true);
}
