//! Measures the routing itself: calls and publications through a realm whose outbox discards everything. The figure is
//! the realm's share of a message, without IO and codecs.
//!
//! `cargo run --release -p crosstie-routing --example route_speed`
//!
//! `… --example route_speed -- 'PUBLISH to 1' 20000` runs that measurement once, with that many rounds. Two such runs
//! under `valgrind --tool=callgrind` differ by the instructions of the rounds between them.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "an example that measures reads the clock"
)]
#![allow(clippy::print_stdout, reason = "its output is what it is for")]

use std::hint::black_box;
use std::time::Instant;

use crosstie_routing::{
    Authorizer, ClientFeatures, CloseReason, Decision, Identity, Outbox, Permission, Question,
    Realm, RealmConfig, Refused, Role, RoleMatch, SessionKey, Time, Verdict,
};
use crosstie_wamp::{
    CallOptions, MatchPolicy, Message, Payload, PublishOptions, RegisterOptions, RequestId,
    Serializer, SubscribeOptions, YieldOptions,
};

const ROUNDS: u32 = 2_000_000;
const RUNS: usize = 5;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let only = arguments.next();
    let rounds = arguments
        .next()
        .map(|text| text.parse().expect("rounds are a number"));
    let asked = Asked {
        only,
        runs: rounds.map_or(RUNS, |_: u32| 1),
        rounds: rounds.unwrap_or(ROUNDS),
    };
    let report = |name: &str, run: &dyn Fn(u32) -> f64| asked.report(name, run);
    for (name, outstanding, timeout_ms) in [
        ("CALL + YIELD, 1 outstanding", 1, 0),
        ("CALL + YIELD, 64 outstanding", 64, 0),
        ("CALL + YIELD, 64 outstanding, with a timeout", 64, 30_000),
        ("CALL + YIELD, 4096 outstanding", 4_096, 0),
    ] {
        report(name, &|rounds| {
            calls(rounds, RealmConfig::open("realm1"), outstanding, timeout_ms)
        });
    }
    report("CALL + YIELD, 64 outstanding, 20 permissions", &|rounds| {
        calls(rounds, many_permissions(), 64, 0)
    });
    report(
        "CALL + YIELD, 64 outstanding, Crossbar.io's order",
        &|rounds| {
            let mut config = many_permissions();
            config.roles[0].role_match = RoleMatch::Crossbar;
            calls(rounds, config, 64, 0)
        },
    );
    report("CALL + YIELD, 64 outstanding, a kept decision", &|rounds| {
        calls(rounds, asking(), 64, 0)
    });
    for subscribers in [1, 50, 500] {
        report(&format!("PUBLISH to {subscribers}"), &|rounds| {
            publications(rounds, subscribers, 0)
        });
    }
    report("PUBLISH to 1, 10 prefix patterns of others", &|rounds| {
        publications(rounds, 1, 10)
    });
    report("PUBLISH to 1024 shapes of wildcard patterns", &shapes);
    report("SUBSCRIBE to a prefix, 10000 retained events", &retained);
    for procedure in ["wamp.session.count", "wamp.session.list"] {
        report(&format!("CALL of {procedure}, 60000 sessions"), &|rounds| {
            seen(rounds, procedure)
        });
    }
}

/// The selection: every measurement, or the one of that name.
struct Asked {
    only: Option<String>,
    rounds: u32,
    runs: usize,
}

impl Asked {
    /// Prints the best of several runs: the others also measured the machine's other work.
    fn report(&self, name: &str, run: &dyn Fn(u32) -> f64) {
        if self.only.as_ref().is_some_and(|only| only != name) {
            return;
        }
        let runs: Vec<f64> = (0..self.runs).map(|_| run(self.rounds)).collect();
        let best = runs.iter().copied().fold(f64::INFINITY, f64::min);
        let worst = runs.iter().copied().fold(0.0, f64::max);
        println!("{name:50} {best:9.1} ns  (worst run {worst:.1})");
    }
}

fn calls(rounds: u32, config: RealmConfig, outstanding: u64, timeout_ms: u64) -> f64 {
    let mut realm = Realm::new(config, 1);
    let (callee, caller) = (join(&mut realm), join(&mut realm));
    let mut out = Discard(0, None);
    have_decided(&mut realm, callee, caller);
    let mut handle = |from: SessionKey, message: Message<'_>| {
        realm
            .handle(Time(0), from, &message, &mut out)
            .expect("no violations here");
    };
    handle(
        callee,
        Message::Register {
            request: RequestId(1),
            options: RegisterOptions::default(),
            procedure: "com.example.add2".into(),
        },
    );
    let payload = Payload::new(Serializer::Json, b"[1,2]", b"");
    let mut call = |request: u64| {
        handle(
            caller,
            Message::Call {
                request: RequestId(request),
                options: CallOptions {
                    timeout_ms,
                    ..CallOptions::default()
                },
                procedure: "com.example.add2".into(),
                payload,
            },
        );
        // Answers the oldest call: invocation ids count up like the requests here.
        if request > outstanding {
            handle(
                callee,
                Message::Yield {
                    request: RequestId(request - outstanding),
                    options: YieldOptions::default(),
                    payload,
                },
            );
        }
    };
    (1..=outstanding).for_each(&mut call);
    let start = Instant::now();
    (outstanding + 1..=outstanding + u64::from(rounds)).for_each(&mut call);
    let elapsed = start.elapsed();
    black_box(out.0);
    elapsed.as_nanos() as f64 / f64::from(rounds)
}

fn publications(rounds: u32, subscribers: u32, patterns: u32) -> f64 {
    let mut realm = Realm::new(RealmConfig::open("realm1"), 1);
    let mut out = Discard(0, None);
    let publisher = join(&mut realm);
    let mut subscribe = |realm: &mut Realm<u32>, match_policy, topic: String| {
        let from = join(realm);
        let message = Message::Subscribe {
            request: RequestId(1),
            options: SubscribeOptions::matching(match_policy),
            topic: topic.into(),
        };
        realm
            .handle(Time(0), from, &message, &mut out)
            .expect("no violations here");
    };
    for _ in 0..subscribers {
        subscribe(
            &mut realm,
            MatchPolicy::Exact,
            "com.example.topic".to_owned(),
        );
    }
    for index in 0..patterns {
        let topic = "x".repeat(index as usize + 1);
        subscribe(&mut realm, MatchPolicy::Prefix, topic);
    }
    let rounds = rounds / subscribers.max(10) * 10;
    let payload = Payload::new(Serializer::Json, b"[1,2]", b"");
    let start = Instant::now();
    for round in 1..=u64::from(rounds) {
        let message = Message::Publish {
            request: RequestId(round),
            options: PublishOptions::default(),
            topic: "com.example.topic".into(),
            payload,
        };
        realm
            .handle(Time(0), publisher, &message, &mut out)
            .expect("no violations here");
    }
    let elapsed = start.elapsed();
    black_box(out.0);
    elapsed.as_nanos() as f64 / f64::from(rounds)
}

/// Publishes to as many matching patterns as a realm may have.
fn shapes(rounds: u32) -> f64 {
    let mut realm = Realm::new(RealmConfig::open("realm1"), 1);
    let mut out = Discard(0, None);
    let session = join(&mut realm);
    let mut handle = |message: Message<'_>| {
        realm
            .handle(Time(0), session, &message, &mut out)
            .expect("no violations here");
    };
    for number in 0..1_024_u32 {
        let is_any = |place: u32| place < 10 && number >> place & 1 == 1;
        let components: Vec<_> = (0..127)
            .map(|place| if is_any(place) { "" } else { "a" })
            .collect();
        handle(Message::Subscribe {
            request: RequestId(u64::from(number) + 1),
            options: SubscribeOptions::matching(MatchPolicy::Wildcard),
            topic: components.join(".").into(),
        });
    }
    let topic = ["a"; 127].join(".");
    let rounds = (rounds / 2_000).max(1);
    let start = Instant::now();
    for round in 1..=u64::from(rounds) {
        handle(Message::Publish {
            request: RequestId(2_000 + round),
            options: PublishOptions::default(),
            topic: topic.as_str().into(),
            payload: Payload::EMPTY,
        });
    }
    let elapsed = start.elapsed();
    black_box(out.0);
    elapsed.as_nanos() as f64 / f64::from(rounds)
}

/// Subscribes again and again to more retained events than one subscription is sent.
fn retained(rounds: u32) -> f64 {
    let mut realm = Realm::new(RealmConfig::open("realm1"), 1);
    let mut out = Discard(0, None);
    let session = join(&mut realm);
    let mut handle = |message: Message<'_>| {
        realm
            .handle(Time(0), session, &message, &mut out)
            .expect("no violations here");
    };
    for number in 1..=10_000 {
        handle(Message::Publish {
            request: RequestId(number),
            options: PublishOptions {
                retain: true,
                ..PublishOptions::default()
            },
            topic: format!("com.example.topic.n{number}").into(),
            payload: Payload::EMPTY,
        });
    }
    let rounds = (rounds / 2_000).max(1);
    let start = Instant::now();
    for round in 1..=u64::from(rounds) {
        handle(Message::Subscribe {
            request: RequestId(10_000 + round),
            options: SubscribeOptions {
                match_policy: MatchPolicy::Prefix,
                get_retained: true,
                acknowledged_delivery: false,
                ..SubscribeOptions::default()
            },
            topic: "com.".into(),
        });
    }
    let elapsed = start.elapsed();
    black_box(out.0);
    elapsed.as_nanos() as f64 / f64::from(rounds)
}

/// Calls the meta API of a realm with many sessions.
fn seen(rounds: u32, procedure: &str) -> f64 {
    let mut realm = Realm::new(RealmConfig::open("realm1"), 1);
    let mut out = Discard(0, None);
    let sessions: Vec<_> = (0..60_000).map(|_| join(&mut realm)).collect();
    for session in &sessions {
        realm.welcomed(Time(0), *session, &mut out);
    }
    let rounds = (rounds / 20_000).max(1);
    let start = Instant::now();
    for round in 1..=u64::from(rounds) {
        let message = Message::Call {
            request: RequestId(round),
            options: CallOptions::default(),
            procedure: procedure.into(),
            payload: Payload::EMPTY,
        };
        realm
            .handle(Time(0), sessions[0], &message, &mut out)
            .expect("no violations here");
    }
    let elapsed = start.elapsed();
    black_box(out.0);
    elapsed.as_nanos() as f64 / f64::from(rounds)
}

fn many_permissions() -> RealmConfig {
    let mut config = RealmConfig::open("realm1");
    let universal = Role::everything("anonymous").permissions.remove(0);
    let narrower = (0..20).map(|index| Permission {
        uri: format!("com.app{index}."),
        ..universal.clone()
    });
    let permissions = narrower.chain([universal.clone()]).collect();
    config.roles = vec![Role::new("anonymous", permissions)];
    config
}

/// If the realm has an authorizer, has it allow what follows.
fn have_decided(realm: &mut Realm<u32>, callee: SessionKey, caller: SessionKey) {
    let request = RequestId(1);
    let procedure = "com.example.add2";
    let call = Message::Call {
        request,
        options: CallOptions::default(),
        procedure: procedure.into(),
        payload: Payload::EMPTY,
    };
    let register = Message::Register {
        request,
        options: RegisterOptions::default(),
        procedure: procedure.into(),
    };
    for (from, message) in [(caller, call), (callee, register)] {
        let mut out = Discard(0, None);
        let handled = realm.handle(Time(0), from, &message, &mut out);
        handled.expect("no violations here");
        let Some(question) = out.1 else {
            continue;
        };
        let decision = Decision {
            allow: true,
            cache: true,
            ..Decision::default()
        };
        let judged = (question, Verdict::Decided(decision));
        let handled = realm.handle_judged(Time(0), from, &message, judged, &mut Discard(0, None));
        handled.expect("no violations here");
    }
}

/// A realm with a role that has an authorizer.
fn asking() -> RealmConfig {
    let mut config = RealmConfig::open("realm1");
    let authorizer = Authorizer::new("com.example.authorize");
    config.roles = vec![Role::asking("anonymous", authorizer)];
    config
}

fn join(realm: &mut Realm<u32>) -> SessionKey {
    let identity = Identity::new("anonymous", "anonymous", "anonymous", "static");
    let joined = realm.join(Time(0), 7, identity, ClientFeatures::default());
    joined.expect("the role exists").0
}

/// Discards every message, and keeps a sum so that nothing is optimized away; keeps the last question to an authorizer.
struct Discard(u64, Option<Question>);

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

    fn ask(&mut self, _: &u32, question: Question) {
        self.1 = Some(question);
    }

    fn close(&mut self, _session: &u32, _reason: CloseReason) {}
}
