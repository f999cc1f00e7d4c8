//! Sessions of a router's own that communicate in one of its realms.

use std::sync::Arc;
use std::time::Duration;

use crosstie_config::{self as model, Config, Worker};
use crosstie_realms::resident::*;
use crosstie_routing::{Authorizer, Identity, Role};
use crosstie_wamp::{
    CallOptions, MatchPolicy, Payload, PublishOptions, RegisterOptions, Serializer,
    SubscribeOptions,
};
use tokio::runtime::Runtime;

use crate::router::{Router, RouterOptions};

struct Rig {
    router: Router,
    realm: model::Realm,
    runtime: Runtime,
}

const PATIENCE: Duration = Duration::from_secs(30);

impl Rig {
    fn start() -> Self {
        let config = Config::embedded_default();
        let Some(Worker::Router(worker)) = config.workers.into_iter().next() else {
            panic!("the embedded default is a router");
        };
        let mut worker = *worker;
        worker.transports.clear();
        let realm = worker.realms.remove(0);
        worker.realms.clear();
        let options = RouterOptions::default();
        let router = Router::start(&worker, &config.limits, &options).expect("threads");
        router.start_realm(&realm).expect("is new");
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a thread");
        Self {
            router,
            realm,
            runtime,
        }
    }

    fn place(&self, role: &str) -> Place {
        let manner = Manner {
            identity: Identity::new("test", role, "internal", "static"),
            is_shown: true,
            serializer: Serializer::Json,
            message_bytes_max: 16 << 20,
            is_judged: true,
            runtime: self.runtime.handle().clone(),
        };
        let rooms = Arc::clone(&self.router.state.realms);
        Place::new(rooms, &self.realm.name, manner)
    }

    fn run<R>(&self, test: impl Future<Output = R>) -> R {
        let patient = async { tokio::time::timeout(PATIENCE, test).await };
        self.runtime.block_on(patient).expect("comes in time")
    }
}

fn json<'a>(args: &'a str, kwargs: &'a str) -> Payload<'a> {
    Payload::new(Serializer::Json, args.as_bytes(), kwargs.as_bytes())
}

fn text(kept: &Kept) -> String {
    let part = |bytes| std::str::from_utf8(bytes).expect("text");
    format!("{} {}", part(&kept.args), part(&kept.kwargs))
}

async fn call(resident: &Arc<Resident>, procedure: &str) -> Result<Kept, Failed> {
    let payload = json("[1,2]", r#"{"a":3}"#);
    let options = CallOptions::default();
    resident.call(procedure, options, payload).await
}

fn acknowledged() -> PublishOptions {
    PublishOptions::acknowledged()
}

fn uri(failed: Failed) -> String {
    match failed {
        Failed::Error { uri, .. } => uri,
        other => panic!("{other}"),
    }
}

#[test]
fn a_call_is_answered_by_another_session() {
    let rig = Rig::start();
    rig.run(async {
        let (one, other) = (rig.place("anonymous"), rig.place("anonymous"));
        let callee = other.resident().expect("joins");
        let options = RegisterOptions::default();
        let mut served = callee.register("com.a", options).await.expect("is free");
        let serving = tokio::spawn(async move {
            let first = served.next().await.expect("a call");
            let payload = text(&first.payload);
            first.answer(json("[4]", ""));
            let second = served.next().await.expect("a call");
            second.fail("com.error.b", json(r#"["why"]"#, ""));
            let third = served.next().await.expect("a call");
            drop(third);
            payload
        });
        let caller = one.resident().expect("joins");
        assert_eq!(text(&call(&caller, "com.a").await.expect("4")), "[4] ");
        let failed = call(&caller, "com.a").await.expect_err("fails");
        let Failed::Error { uri, payload } = failed else {
            panic!("{failed}");
        };
        assert_eq!(
            (uri.as_str(), text(&payload)),
            ("com.error.b", r#"["why"] "#.to_owned())
        );
        let dropped = call(&caller, "com.a").await.expect_err("is dropped");
        assert_eq!(self::uri(dropped), "wamp.error.canceled");
        assert_eq!(serving.await.expect("ends"), r#"[1,2] {"a":3}"#);
        // The registration ended with its session.
        let gone = call(&caller, "com.a").await.expect_err("has gone");
        assert_eq!(self::uri(gone), "wamp.error.no_such_procedure");
    });
}

#[test]
fn dropping_the_request_cancels_the_call() {
    let rig = Rig::start();
    rig.run(async {
        let (one, other) = (rig.place("anonymous"), rig.place("anonymous"));
        let callee = other.resident().expect("joins");
        let options = RegisterOptions::default();
        let mut served = callee.register("com.a", options).await.expect("is free");
        let caller = one.resident().expect("joins");
        let calling = tokio::spawn(async move { call(&caller, "com.a").await });
        let mut invocation = served.next().await.expect("a call");
        calling.abort();
        invocation.interrupted().await;
        // A second wait returns at once.
        invocation.interrupted().await;
        drop(invocation);
        assert!(calling.await.is_err());
        assert_eq!(rig.router.realms()[0].calls, 0);
    });
}

#[test]
fn events_come_in_order_and_no_faster_than_they_are_taken() {
    const EVENTS: usize = 300;
    let rig = Rig::start();
    rig.run(async {
        let (one, other) = (rig.place("anonymous"), rig.place("anonymous"));
        let subscriber = other.resident().expect("joins");
        let options = SubscribeOptions::matching(MatchPolicy::Prefix);
        let mut events = subscriber.subscribe("com", options).await.expect("may");
        let publisher = one.resident().expect("joins");
        // 3 MiB, of which at most one is read from the mailbox before a receiver takes some.
        let long = "x".repeat(10_000);
        for number in 0..EVENTS {
            let args = format!(r#"[{number},"{long}"]"#);
            let published = publisher.publish("com.a", acknowledged(), json(&args, ""));
            assert!(published.await.expect("may").is_some());
        }
        for number in 0..EVENTS {
            let event = events.next().await.expect("an event");
            assert_eq!(event.topic.as_deref(), Some("com.a"));
            assert!(text(&event.payload).starts_with(&format!("[{number},")));
        }
        let options = SubscribeOptions::matching(MatchPolicy::Prefix);
        let twice = subscriber.subscribe("com", options).await.err();
        assert!(matches!(twice, Some(Failed::Lost(_))));
        drop(events);
        // The answer follows the UNSUBSCRIBE.
        let behind = call(&subscriber, "com.none").await.expect_err("is none");
        assert_eq!(uri(behind), "wamp.error.no_such_procedure");
        assert_eq!(rig.router.realms()[0].subscriptions, 0);
    });
}

#[test]
fn a_place_outlives_its_realm() {
    let rig = Rig::start();
    rig.run(async {
        let place = rig.place("anonymous");
        let resident = place.resident().expect("joins");
        let options = SubscribeOptions::default();
        let mut events = resident.subscribe("com.a", options).await.expect("may");
        let options = RegisterOptions::default();
        let mut served = resident.register("com.b", options).await.expect("is free");
        let waiting = tokio::spawn({
            let resident = Arc::clone(&resident);
            async move { call(&resident, "com.b").await }
        });
        let _invocation = served.next().await.expect("a call");
        std::thread::scope(|scope| {
            scope.spawn(|| rig.router.stop_realm(&rig.realm.name).expect("runs"));
        });
        assert!(waiting.await.expect("is answered").is_err());
        assert!(events.next().await.is_none());
        assert!(served.next().await.is_none());
        assert!(resident.is_over());
        let lost = call(&resident, "com.b").await.expect_err("is over");
        assert!(matches!(lost, Failed::Lost(_)));
        assert_eq!(
            place.resident().err().map(|e| e.to_string()).as_deref(),
            Some("there is no realm \"realm1\"")
        );
        let awaiting = tokio::spawn(async move {
            let again = place.awaited().await;
            // Dropping the place would end the session.
            (place, again)
        });
        tokio::task::yield_now().await;
        rig.router.start_realm(&rig.realm).expect("is new");
        let (_place, again) = awaiting.await.expect("comes");
        let published = again.publish("com.a", acknowledged(), json("[]", "")).await;
        assert!(published.expect("may").is_some());
    });
}

#[test]
fn a_missing_role_and_a_missing_permission_are_errors() {
    let rig = Rig::start();
    rig.run(async {
        let place = rig.place("staff");
        let missing = place.resident().err().map(|e| e.to_string());
        assert_eq!(
            missing.as_deref(),
            Some("realm \"realm1\" has no role \"staff\"")
        );
        let nothing = Role {
            permissions: Vec::new(),
            ..Role::everything("staff")
        };
        rig.router.start_role("realm1", &nothing).expect("is new");
        let resident = place.resident().expect("joins");
        let denied = call(&resident, "com.a").await.expect_err("may not");
        assert_eq!(uri(denied), "wamp.error.not_authorized");
        let denied = resident
            .publish("com.a", acknowledged(), json("", ""))
            .await;
        assert_eq!(
            uri(denied.expect_err("may not")),
            "wamp.error.not_authorized"
        );
    });
}

#[test]
fn an_authorizer_is_asked_in_order() {
    let rig = Rig::start();
    rig.run(async {
        let judged = Role {
            permissions: Vec::new(),
            authorizer: Some(Authorizer::new("com.judge")),
            ..Role::everything("staff")
        };
        rig.router.start_role("realm1", &judged).expect("is new");
        let other = rig.place("anonymous");
        let judge = other.resident().expect("joins");
        let options = RegisterOptions::default();
        let mut asked = judge.register("com.judge", options).await.expect("is free");
        let judging = tokio::spawn(async move {
            let mut uris = Vec::new();
            while let Some(question) = asked.next().await {
                let uri = ["com.a", "com.b", "com.c"]
                    .into_iter()
                    .find(|uri| text(&question.payload).contains(&format!("\"{uri}\"")));
                uris.push(uri.expect("one of them"));
                question.answer(match uri {
                    Some("com.b") => json("[false]", ""),
                    _ => json("[true]", ""),
                });
                if uris.len() == 3 {
                    break;
                }
            }
            uris
        });
        let place = rig.place("staff");
        let resident = place.resident().expect("joins");
        let (a, b, c) = tokio::join!(
            call(&resident, "com.a"),
            call(&resident, "com.b"),
            resident.publish("com.c", acknowledged(), json("[1]", "")),
        );
        assert_eq!(uri(a.expect_err("is none")), "wamp.error.no_such_procedure");
        assert_eq!(uri(b.expect_err("may not")), "wamp.error.not_authorized");
        assert!(c.expect("may").is_some());
        assert_eq!(judging.await.expect("ends"), ["com.a", "com.b", "com.c"]);
        // Nothing waits any more, and the authorizer has gone.
        let unasked = call(&resident, "com.a").await.expect_err("is not judged");
        assert_eq!(uri(unasked), "wamp.error.authorization_failed");
    });
}
