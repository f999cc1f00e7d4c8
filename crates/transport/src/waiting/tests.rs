//! The controller by scripts, and a thread with its machine simulated from a seed.

use std::fmt::Write as _;
use std::sync::Arc;

use super::controller::{Conditions, Controller, Plan, WINDOW_NS};
use super::{IS_WAITING, Waiting, before_wait, expect_none_of, note_input, prepare};

const US: u64 = 1_000;
const MS: u64 = 1_000_000;

/// A thread in virtual time: it works for a while at each input, then waits.
struct Bench {
    controller: Controller,
    now: u64,
    conditions: Conditions,
    /// The sender of each input runs on the thread's own core: no input comes while it spins.
    shares_core: bool,
    work_ns: u64,
    hits: u64,
    misses: u64,
    spun_ns: u64,
    blocked: u64,
    /// The end and the length of each spin.
    spins: Vec<(u64, u64)>,
}

impl Bench {
    fn new(percent: u8) -> Self {
        Self {
            controller: Controller::new(percent),
            now: 0,
            conditions: Conditions {
                is_alone: false,
                delay_ns: 0,
            },
            shares_core: false,
            work_ns: 5 * US,
            hits: 0,
            misses: 0,
            spun_ns: 0,
            blocked: 0,
            spins: Vec::new(),
        }
    }

    /// One input of that connection is handled, and the next one comes after `gap`.
    fn turn(&mut self, connection: usize, gap: u64) {
        const WAKE_UP: u64 = 25 * US;
        self.now += self.work_ns;
        let limit = self.plan(connection);
        let since = self.now;
        self.now = match limit {
            0 => {
                self.blocked += 1;
                let wake_up = if self.shares_core { 2 * US } else { WAKE_UP };
                since + gap + wake_up
            }
            limit if gap <= limit && !self.shares_core => {
                self.note_spun(since + gap, gap);
                self.hits += 1;
                since + gap
            }
            limit => {
                self.controller.note_missed(since + limit);
                self.note_spun(since + limit, limit);
                self.misses += 1;
                match self.shares_core {
                    // The sender has the core from now on.
                    true => since + limit + gap,
                    false => since + gap.max(limit) + WAKE_UP,
                }
            }
        };
        let spent = self.controller.note_input(self.now);
        assert_eq!(
            spent.is_some(),
            limit > 0 && self.now == since + gap && !self.shares_core
        );
    }

    fn plan(&mut self, connection: usize) -> u64 {
        let mut plan = self.controller.plan(self.now, connection);
        if plan == Plan::Look {
            self.controller.note_conditions(self.now, self.conditions);
            plan = self.controller.plan(self.now, connection);
            assert_ne!(plan, Plan::Look, "it has just looked");
        }
        match plan {
            Plan::Spin(limit) => {
                self.controller.note_spinning();
                limit
            }
            Plan::Block | Plan::Look => 0,
        }
    }

    fn note_spun(&mut self, end: u64, length: u64) {
        self.spun_ns += length;
        self.spins.push((end, length));
    }

    /// The most time spun within any window of the budget.
    fn most_spun(&self) -> u64 {
        let mut most = 0;
        let (mut first, mut sum) = (0, 0);
        for (end, length) in &self.spins {
            sum += length;
            while self.spins[first].0 + WINDOW_NS <= *end {
                sum -= self.spins[first].1;
                first += 1;
            }
            most = most.max(sum);
        }
        most
    }
}

/// Plays lines such as `1 18us x100`: inputs of connection 1, each 18 µs before the next input; `work 3us` and the like
/// set the scene. After each line of inputs follow the limit of that connection and what was done.
#[track_caller]
fn check(script: &str, expected: &str) {
    let mut bench = Bench::new(80);
    let mut found = String::new();
    for line in script
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
    {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        match words[..] {
            ["budget", percent] => bench = Bench::new(percent.parse().expect("a number")),
            ["work", time] => bench.work_ns = nanoseconds(time),
            ["same-core"] => bench.shares_core = true,
            ["two-cores"] => bench.shares_core = false,
            ["alone"] => bench.conditions.is_alone = true,
            ["delayed", time] => bench.conditions.delay_ns += nanoseconds(time),
            ["pass", time] => bench.now += nanoseconds(time),
            [ref turns @ .., times] => {
                let times: usize = times.trim_start_matches('x').parse().expect("a number");
                let before = (bench.hits, bench.misses, bench.blocked);
                for _ in 0..times {
                    for turn in turns.chunks(2) {
                        bench.turn(turn[0].parse().expect("a connection"), nanoseconds(turn[1]));
                    }
                }
                let limits = turns.chunks(2).map(|turn| {
                    let connection = turn[0].parse().expect("a connection");
                    format!("{}us", bench.controller.limit(connection) / US)
                });
                let limits: Vec<_> = limits.collect();
                let (hits, misses) = (bench.hits - before.0, bench.misses - before.1);
                let blocked = bench.blocked - before.2;
                writeln!(
                    found,
                    "{line}: {}, {hits} hits, {misses} misses, {blocked} blocked",
                    limits.join(" ")
                )
                .expect("a string");
            }
            [] => {}
        }
    }
    let expected = expected
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty());
    let found: Vec<_> = found.lines().collect();
    assert_eq!(found, expected.collect::<Vec<_>>());
}

fn nanoseconds(time: &str) -> u64 {
    let unit = |suffix: &str, of: u64| {
        let number = time.strip_suffix(suffix)?;
        Some(number.parse::<u64>().ok()? * of)
    };
    unit("us", US).or_else(|| unit("ms", MS)).expect("a time")
}

#[test]
fn a_wait_behind_a_pong_is_not_looked_at() {
    let _spinning = prepare(Waiting::Adaptive(90), Arc::default()).expect("it may spin");
    // The last input, the connection of the pong, and whether the wait is looked at.
    for (last, pong, is_looked_at) in [(7, 7, false), (8, 7, true), (7, 7, false)] {
        note_input(7);
        note_input(last);
        expect_none_of(pong);
        before_wait();
        assert_eq!(IS_WAITING.get(), is_looked_at);
    }
}

#[test]
fn short_waits_spin_after_a_few() {
    check(
        "1 18us x100",
        "1 18us x100: 40us, 96 hits, 0 misses, 4 blocked",
    );
}

#[test]
fn long_waits_never_spin() {
    check(
        "1 5ms x100\n1 300us x100",
        "1 5ms x100: 0us, 0 hits, 0 misses, 100 blocked
         1 300us x100: 0us, 0 hits, 0 misses, 100 blocked",
    );
}

#[test]
fn an_answer_is_waited_for_and_the_next_call_is_not() {
    check(
        "1 35us 2 5ms x100",
        "1 35us 2 5ms x100: 80us 0us, 96 hits, 0 misses, 104 blocked",
    );
}

#[test]
fn waits_of_several_lengths_spin_for_the_short_ones() {
    check(
        "1 10us 1 10us 1 10us 1 200us x100
         2 10us 2 200us 2 200us 2 200us x100
         3 10us 3 400us 3 400us 3 400us 3 400us 3 400us 3 400us 3 400us 3 400us x100",
        "1 10us 1 10us 1 10us 1 200us x100: 20us 20us 20us 20us, 297 hits, 99 misses, 4 blocked
         2 10us 2 200us 2 200us 2 200us x100: 10us 10us 10us 10us, 99 hits, 297 misses, 4 blocked
         3 10us 3 400us 3 400us 3 400us 3 400us 3 400us 3 400us 3 400us 3 400us x100: \
         0us 0us 0us 0us 0us 0us 0us 0us 0us, 0 hits, 1 misses, 899 blocked",
    );
}

#[test]
fn a_change_is_learned_by_a_dozen_waits() {
    check(
        "1 18us x100
         1 500us x100
         1 18us x100",
        "1 18us x100: 40us, 96 hits, 0 misses, 4 blocked
         1 500us x100: 0us, 0 hits, 17 misses, 83 blocked
         1 18us x100: 40us, 93 hits, 0 misses, 7 blocked",
    );
}

#[test]
fn a_peer_on_the_same_core_stops_the_spins() {
    check(
        "work 1us
         same-core
         1 3us x100
         1 3us x10000
         two-cores
         pass 4000ms
         1 18us x10000",
        "1 3us x100: 10us, 0 hits, 3 misses, 97 blocked
         1 3us x10000: 10us, 0 hits, 0 misses, 10000 blocked
         1 18us x10000: 80us, 8885 hits, 1 misses, 1114 blocked",
    );
}

#[test]
fn the_only_core_never_spins() {
    check(
        "alone
         1 18us x100",
        "1 18us x100: 80us, 0 hits, 0 misses, 100 blocked",
    );
}

#[test]
fn a_delayed_thread_stops_spinning() {
    check(
        "1 18us x100
         1 18us x1000
         delayed 4ms
         1 18us x2000
         delayed 12ms
         1 18us x2000
         1 18us x4000",
        "1 18us x100: 40us, 96 hits, 0 misses, 4 blocked
         1 18us x1000: 40us, 1000 hits, 0 misses, 0 blocked
         1 18us x2000: 40us, 2000 hits, 0 misses, 0 blocked
         1 18us x2000: 80us, 384 hits, 0 misses, 1616 blocked
         1 18us x4000: 40us, 3532 hits, 0 misses, 468 blocked",
    );
}

#[test]
fn a_thread_that_shares_its_core_hardly_spins() {
    let mut bench = Bench::new(80);
    while bench.now < 60_000 * MS {
        let before = bench.now;
        bench.turn(1, 18 * US);
        bench.conditions.delay_ns += (bench.now - before) / 2;
    }
    assert!(bench.spun_ns < bench.now / 50, "{} us", bench.spun_ns / US);
}

#[test]
fn a_thread_that_works_most_of_the_time_blocks() {
    check(
        "work 60us
         1 5us x2000
         1 5us x20000",
        "1 5us x2000: 20us, 747 hits, 0 misses, 1253 blocked
         1 5us x20000: 20us, 0 hits, 0 misses, 20000 blocked",
    );
}

#[test]
fn the_budget_bounds_the_spins() {
    check(
        "budget 10
         1 18us x10000
         budget 0
         1 18us x100",
        "1 18us x10000: 80us, 2216 hits, 0 misses, 7784 blocked
         1 18us x100: 80us, 0 hits, 0 misses, 100 blocked",
    );
}

#[test]
fn a_stopped_process_begins_anew() {
    check(
        "1 18us x100
         pass 3600000ms
         1 18us x10000",
        "1 18us x100: 40us, 96 hits, 0 misses, 4 blocked
         1 18us x10000: 40us, 9674 hits, 0 misses, 326 blocked",
    );
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}

/// Peers of any habits, which change: the spins cost little more than the wake-ups that they save are worth, and never
/// more than the budget.
#[test]
fn spins_pay_under_any_load() {
    for seed in 0..100 {
        let mut random = Random(seed);
        let mut bench = Bench::new(80);
        let phases = 20;
        for _ in 0..phases {
            let connections = 1 + random.below(3);
            let shortest: Vec<u64> = (0..connections).map(|_| 1 + random.below(120)).collect();
            let spread = 1 + random.below(60);
            let rare = random.below(4);
            bench.work_ns = (1 + random.below(30)) * US;
            bench.shares_core = random.below(4) == 0;
            for _ in 0..500 {
                let connection = random.below(connections);
                let mut gap = (shortest[connection as usize] + random.below(spread)) * US;
                if random.below(10) < rare {
                    gap += random.below(5_000) * US;
                }
                bench.turn(connection as usize, gap);
            }
        }
        assert!(bench.most_spun() <= 80 * MS, "seed {seed}");
        let saved = bench.hits * 80 * US;
        let learning = phases * 3 * 16 * 80 * US;
        assert!(bench.spun_ns <= saved + learning, "seed {seed}");
    }
}

/// A peer that knows the limit: it sends at its end, or just behind it, and makes the spins pay again in between.
#[test]
fn a_peer_that_times_its_messages_is_bounded_by_the_budget() {
    for (percent, seed) in [(5, 1), (20, 2), (80, 3), (100, 4)] {
        let mut random = Random(seed);
        let mut bench = Bench::new(percent);
        for _ in 0..30_000 {
            let limit = bench.controller.limit(1);
            let gap = match limit {
                0 => 1 + random.below(5) * US,
                limit if random.below(4) == 0 => limit + 1,
                limit => limit,
            };
            bench.turn(1, gap);
        }
        let budget = u64::from(percent) * MS;
        assert!(
            bench.most_spun() <= budget,
            "{percent} %: {}",
            bench.most_spun()
        );
        assert!(
            bench.most_spun() > budget / 2,
            "{percent} %: {}",
            bench.most_spun()
        );
    }
}
