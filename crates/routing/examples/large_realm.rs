//! Measures what a large realm costs: a publication among ten thousand patterns, and the memory of a session and of a
//! registration. Also compares how fast the first and the last sessions join.
//!
//! `cargo run --release -p crosstie-routing --example large_realm`

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "an example that measures reads the clock"
)]
#![allow(clippy::print_stdout, reason = "its output is what it is for")]

use std::fs;
use std::hint::black_box;
use std::time::Instant;

use crosstie_routing::{
    ClientFeatures, CloseReason, Identity, Outbox, Realm, RealmConfig, Refused, SessionKey, Time,
};
use crosstie_wamp::{
    MatchPolicy, Message, Payload, PublishOptions, RegisterOptions, RequestId, SubscribeOptions,
};

const TOPIC: &str = "com.app1.event1";

/// The patterns that match the topic: five prefixes, and five shapes of wildcard patterns.
const MATCHING: [(MatchPolicy, &str); 10] = [
    (MatchPolicy::Prefix, "com"),
    (MatchPolicy::Prefix, "com."),
    (MatchPolicy::Prefix, "com.app1"),
    (MatchPolicy::Prefix, "com.app1."),
    (MatchPolicy::Prefix, TOPIC),
    (MatchPolicy::Wildcard, ".."),
    (MatchPolicy::Wildcard, "com.."),
    (MatchPolicy::Wildcard, "..event1"),
    (MatchPolicy::Wildcard, "com..event1"),
    (MatchPolicy::Wildcard, ".app1.event1"),
];

const PATTERNS: usize = 10_000;
const PUBLICATIONS: u64 = 500_000;
const SESSIONS: usize = 60_000;
const REGISTRATIONS: u64 = 1_000_000;
/// Each session may hold ten thousand registrations.
const CALLEES: usize = 100;
/// The rates of the first and of the last `PART` joins are compared.
const PART: usize = 1_000;
const RUNS: usize = 5;

fn main() {
    let few = best(|| publish_among(MATCHING.len()));
    let many = best(|| publish_among(PATTERNS));
    println!("PUBLISH that 10 patterns match, of 10:       {few:8.1} ns");
    println!(
        "PUBLISH that 10 patterns match, of {PATTERNS}:    {many:8.1} ns, {:.2} times",
        many / few
    );
    sessions();
    registrations();
}

/// Returns the best of several runs: the others also measured the machine's other work.
fn best(run: impl Fn() -> f64) -> f64 {
    (0..RUNS).map(|_| run()).fold(f64::INFINITY, f64::min)
}

/// Nanoseconds to publish to ten subscribers among that many patterns.
fn publish_among(patterns: usize) -> f64 {
    let mut realm = Realm::new(RealmConfig::open("realm1"), 1);
    let mut out = Discard(0);
    let publisher = join(&mut realm);
    let others = (MATCHING.len()..patterns).map(|number| match number % 2 {
        0 => (MatchPolicy::Prefix, format!("com.app1{number}.")),
        _ => (MatchPolicy::Wildcard, format!("com..event1{number}")),
    });
    let matching = MATCHING.map(|(policy, topic)| (policy, topic.to_owned()));
    for (match_policy, topic) in matching.into_iter().chain(others) {
        let subscriber = join(&mut realm);
        let subscribe = Message::Subscribe {
            request: RequestId(1),
            options: SubscribeOptions::matching(match_policy),
            topic: topic.into(),
        };
        handle(&mut realm, subscriber, &subscribe, &mut out);
    }
    let start = Instant::now();
    for request in 1..=PUBLICATIONS {
        let publish = Message::Publish {
            request: RequestId(request),
            options: PublishOptions::default(),
            topic: TOPIC.into(),
            payload: Payload::EMPTY,
        };
        handle(&mut realm, publisher, &publish, &mut out);
    }
    let elapsed = start.elapsed();
    black_box(out.0);
    elapsed.as_nanos() as f64 / PUBLICATIONS as f64
}

fn sessions() {
    let mut realm = Realm::new(RealmConfig::open("realm1"), 1);
    let mut out = Discard(0);
    let before = resident_bytes();
    let mut nanos = Vec::with_capacity(SESSIONS);
    for _ in 0..SESSIONS {
        let start = Instant::now();
        let session = join(&mut realm);
        realm.welcomed(Time(0), session, &mut out);
        nanos.push(start.elapsed().as_nanos() as u64);
    }
    let each = (resident_bytes() - before) / SESSIONS as u64;
    let (first, last) = (median(&nanos[..PART]), median(&nanos[SESSIONS - PART..]));
    println!("{SESSIONS} sessions: {each} bytes each; join of the first {PART}: {first} ns");
    println!("                                     of the last {PART}: {last} ns");
    black_box(&realm);
}

fn registrations() {
    let mut realm = Realm::new(RealmConfig::open("realm1"), 1);
    let mut out = Discard(0);
    let callees: Vec<_> = (0..CALLEES).map(|_| join(&mut realm)).collect();
    let before = resident_bytes();
    let mut nanos = Vec::with_capacity(REGISTRATIONS as usize);
    let of_nanos = (nanos.capacity() * size_of::<u64>()) as u64;
    for number in 1..=REGISTRATIONS {
        let register = Message::Register {
            request: RequestId(number),
            options: RegisterOptions::default(),
            procedure: format!("com.example.device{number}.reboot").into(),
        };
        let start = Instant::now();
        let callee = callees[number as usize % CALLEES];
        handle(&mut realm, callee, &register, &mut out);
        nanos.push(start.elapsed().as_nanos() as u64);
    }
    assert_eq!(realm.counts().registrations as u64, REGISTRATIONS);
    let each = (resident_bytes() - before - of_nanos) / REGISTRATIONS;
    let (first, last) = (median(&nanos[..PART]), median(&nanos[nanos.len() - PART..]));
    println!("{REGISTRATIONS} registrations: {each} bytes each; the first {PART}: {first} ns");
    println!("                                          the last {PART}: {last} ns");
    black_box(&realm);
}

fn median(nanos: &[u64]) -> u64 {
    let mut sorted = nanos.to_vec();
    sorted.sort_unstable();
    sorted[sorted.len() / 2]
}

/// Resident memory of this process, as the kernel counts it.
fn resident_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("Linux tells");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let text = line.and_then(|line| line.trim().strip_suffix(" kB"));
    text.and_then(|text| text.parse::<u64>().ok())
        .expect("a number of kilobytes")
        * 1_024
}

fn handle(realm: &mut Realm<u32>, from: SessionKey, message: &Message<'_>, out: &mut Discard) {
    realm
        .handle(Time(0), from, message, out)
        .expect("no violations here");
}

fn join(realm: &mut Realm<u32>) -> SessionKey {
    let identity = Identity::new("anonymous", "anonymous", "anonymous", "static");
    let joined = realm.join(Time(0), 7, identity, ClientFeatures::default());
    joined.expect("the role exists").0
}

/// Discards every message, and keeps a sum so that nothing is optimized away.
struct Discard(u64);

impl Outbox<u32> for Discard {
    fn send(&mut self, to: &u32, message: &Message<'_>) -> Result<(), Refused> {
        self.0 = self
            .0
            .wrapping_add(u64::from(*to))
            .wrapping_add(message.kind().code());
        Ok(())
    }

    fn publish(&mut self, _event: &Message<'_>, receivers: &mut dyn Iterator<Item = &u32>) {
        for receiver in receivers {
            self.0 = self.0.wrapping_add(u64::from(*receiver));
        }
    }

    fn close(&mut self, _session: &u32, _reason: CloseReason) {}
}
