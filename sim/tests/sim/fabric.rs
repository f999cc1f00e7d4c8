//! Plays many seeds of nodes on an engine, with faults and without.

use std::ops::RangeInclusive;

use crosstie_sim::fabric::{Asks, Calls, Keeps, Run, Setting, Wills};

/// Nodes and servers.
const WITHOUT_FAULTS: [(usize, usize); 5] = [(1, 1), (2, 1), (2, 2), (3, 2), (4, 3)];
const WITH_FAULTS: [(usize, usize); 4] = [(2, 1), (2, 2), (3, 2), (4, 3)];

/// Plays twenty seeds in every setting; a run says how much crossed.
fn play(settings: &[(usize, usize)], faults: bool, run: impl Fn(u64, Setting) -> usize) {
    play_seeds(1..=20, settings, faults, run);
}

fn play_seeds(
    seeds: RangeInclusive<u64>,
    settings: &[(usize, usize)],
    faults: bool,
    run: impl Fn(u64, Setting) -> usize,
) {
    let only = std::env::var("SIM_SEED").ok();
    let only: Option<u64> = only.map(|seed| seed.parse().expect("a seed is a number"));
    let mut crossed = 0;
    for seed in only.map_or(seeds, |seed| seed..=seed) {
        for (nodes, servers) in settings {
            let setting = Setting {
                nodes: *nodes,
                servers: *servers,
                faults,
                mixed: seed % 4 == 0,
                strict: seed % 2 == 0,
            };
            eprintln!("{setting:?}, SIM_SEED={seed}");
            crossed += run(seed, setting);
        }
    }
    assert!(crossed > 0, "nothing crossed");
}

fn play_events(seed: u64, setting: Setting) -> usize {
    Run::new(seed, setting).play(600)
}

fn play_calls(seed: u64, setting: Setting) -> usize {
    Calls::new(seed, setting).play(1_200)
}

fn play_asks(seed: u64, setting: Setting) -> usize {
    Asks::new(seed, setting).play(150)
}

fn play_keeps(seed: u64, setting: Setting) -> usize {
    Keeps::new(seed, setting).play(4)
}

fn play_wills(seed: u64, setting: Setting) -> usize {
    Wills::new(seed, setting).play(180)
}

#[test]
fn without_faults_the_nodes_are_one_realm() {
    play(&WITHOUT_FAULTS, false, play_events);
}

#[test]
fn with_faults_events_are_lost_and_nothing_else() {
    play(&WITH_FAULTS, true, play_events);
}

#[test]
fn without_faults_calls_are_those_of_one_realm() {
    play(&WITHOUT_FAULTS, false, play_calls);
}

#[test]
fn with_faults_calls_end_once_and_all_nodes_agree() {
    play(&WITH_FAULTS, true, play_calls);
}

#[test]
fn without_faults_every_node_answers_for_all() {
    play(&WITHOUT_FAULTS, false, play_asks);
}

#[test]
fn with_faults_every_question_is_answered_once() {
    play(&WITH_FAULTS, true, play_asks);
}

#[test]
fn without_faults_testaments_reach_all() {
    play_seeds(1..=8, &WITHOUT_FAULTS, false, play_wills);
}

#[test]
fn with_faults_no_testament_comes_twice_and_none_is_lost_with_its_node() {
    play_seeds(1..=8, &WITH_FAULTS, true, play_wills);
}

#[test]
fn without_faults_all_nodes_retain_the_same() {
    play_seeds(1..=4, &WITHOUT_FAULTS, false, play_keeps);
}

#[test]
fn with_faults_all_nodes_come_to_retain_the_same() {
    play_seeds(1..=4, &WITH_FAULTS, true, play_keeps);
}
