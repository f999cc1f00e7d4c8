//! Measures the longest single input of a realm that holds millions of entries, and checks that their memory is free
//! after they have gone.
//!
//! `cargo run --release -p crosstie-routing --example longest_turn [COUNT]`

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "an example that measures reads the clock"
)]
#![allow(clippy::print_stdout, reason = "its output is what it is for")]

use std::time::{Duration, Instant};

use crosstie_routing::{
    ClientFeatures, CloseReason, Identity, Outbox, Realm, RealmConfig, Refused, SessionKey, Time,
};
use crosstie_wamp::{
    CallOptions, MatchPolicy, Message, Payload, RegisterOptions, RequestId, SubscribeOptions,
};

const COUNT: u64 = 4_000_000;

fn main() {
    let argument = std::env::args().nth(1);
    let count = argument.map_or(COUNT, |text| text.parse().expect("a number"));
    for policy in [MatchPolicy::Exact, MatchPolicy::Prefix] {
        let name = format!("SUBSCRIBE, {policy:?}");
        measure(&name, count, |number| Message::Subscribe {
            request: RequestId(number),
            options: SubscribeOptions::matching(policy),
            topic: format!("com.example.topic.n{number:08}").into(),
        });
    }
    measure("REGISTER", count, |number| Message::Register {
        request: RequestId(number),
        options: RegisterOptions::default(),
        procedure: format!("com.example.procedure.n{number:08}").into(),
    });
    measure("CALL, none answered", count, |number| Message::Call {
        request: RequestId(number),
        options: CallOptions::default(),
        procedure: "com.example.served".into(),
        payload: Payload::EMPTY,
    });
}

fn measure(name: &str, count: u64, message: impl Fn(u64) -> Message<'static>) {
    let mut realm = Realm::new(config(), 1);
    let mut out = Discard;
    let (callee, session) = (join(&mut realm), join(&mut realm));
    let register = Message::Register {
        request: RequestId(1),
        options: RegisterOptions::default(),
        procedure: "com.example.served".into(),
    };
    let registered = realm.handle(Time(0), callee, &register, &mut out);
    registered.expect("no violations here");
    let mut inputs = Longest::default();
    for number in 1..=count {
        let message = message(number);
        inputs.time(|| {
            let handled = realm.handle(Time(0), session, &message, &mut out);
            handled.expect("no violations here");
        });
    }
    let mut turns = Longest::default();
    turns.time(|| realm.leave(Time(0), session, &mut out));
    while realm.has_backlog() {
        turns.time(|| realm.work(Time(0), 1_024, &mut out));
    }
    println!("{name:22} input: {inputs}   leaving, a turn: {turns}");
}

/// The longest inputs that were timed.
#[derive(Default)]
struct Longest {
    longest: Duration,
    above_ms: u32,
    all: Duration,
}

impl Longest {
    fn time(&mut self, run: impl FnOnce()) {
        let start = Instant::now();
        run();
        let took = start.elapsed();
        self.longest = self.longest.max(took);
        self.above_ms += u32::from(took > Duration::from_millis(1));
        self.all += took;
    }
}

impl std::fmt::Display for Longest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let longest_ms = self.longest.as_secs_f64() * 1e3;
        let all_ms = self.all.as_secs_f64() * 1e3;
        let above = self.above_ms;
        write!(
            f,
            "longest {longest_ms:7.2} ms, {above:2} above 1 ms, all {all_ms:6.0} ms"
        )
    }
}

fn config() -> RealmConfig {
    let mut config = RealmConfig::open("realm1");
    let limits = &mut config.limits;
    for bound in [
        &mut limits.subscriptions_max,
        &mut limits.registrations_max,
        &mut limits.calls_max,
        &mut limits.realm_subscriptions_max,
        &mut limits.realm_registrations_max,
        &mut limits.realm_calls_max,
    ] {
        *bound = usize::MAX;
    }
    config
}

fn join(realm: &mut Realm<u32>) -> SessionKey {
    let identity = Identity::new("anonymous", "anonymous", "anonymous", "static");
    let joined = realm.join(Time(0), 7, identity, ClientFeatures::default());
    joined.expect("the role exists").0
}

struct Discard;

impl Outbox<u32> for Discard {
    fn send(&mut self, _to: &u32, _message: &Message<'_>) -> Result<(), Refused> {
        Ok(())
    }

    fn publish(&mut self, _event: &Message<'_>, _receivers: &mut dyn Iterator<Item = &u32>) {}

    fn close(&mut self, _session: &u32, _reason: CloseReason) {}
}
