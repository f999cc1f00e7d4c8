//! Recorded events through the keeper, as a realm drives it: in their order, up to their bounds, however they are
//! asked for.

use std::sync::{Arc, Mutex, mpsc};

use crosstie_routing::{
    Acknowledgement, ClientFeatures, Identity, Outbox, Realm, RealmConfig, Recall, Recalled,
    Recorded, Recording, Refused, SessionKey, Time, Unrecorded,
};
use crosstie_store::{EventKeeper, EventOwner, EventStore, EventStoreConfig, StoreError};
use crosstie_wamp::{
    CallOptions, MatchPolicy, Message, Payload, PublishOptions, RequestId, Serializer, Value, codec,
};

const LOOKUP: &str = "wamp.subscription.lookup";
const GET: &str = "wamp.subscription.get_events";

/// What the keeper's thread says.
enum Said {
    Stored(Vec<Acknowledgement>, bool),
    Recalled(Recalled),
}

struct Owner {
    said: Mutex<mpsc::Sender<Said>>,
    /// What is to be waited for before somebody is answered.
    gates: Mutex<mpsc::Receiver<mpsc::Receiver<()>>>,
}

impl Owner {
    fn say(&self, said: Said) {
        let _ = self.said.lock().expect("is whole").send(said);
    }
}

impl EventOwner for Owner {
    fn stored(&self, acknowledgements: Vec<Acknowledgement>, outcome: Result<(), &StoreError>) {
        self.say(Said::Stored(acknowledgements, outcome.is_ok()));
    }

    fn recalled(&self, recalled: Recalled) {
        let gate = self.gates.lock().expect("is whole").try_recv();
        if let Ok(gate) = gate {
            // It opens by being dropped.
            let _ = gate.recv();
        }
        self.say(Said::Recalled(recalled));
    }

    fn counted(&self, _: (u64, u64), _: u64) {}
    fn failed(&self, _: Option<&StoreError>) {}
    fn hold(&self, _: usize) {}
    fn lost(&self, _: usize) {}
}

/// The one session's outbox: what it was sent, and the store.
struct Out<'a> {
    keeper: &'a EventKeeper,
    sent: Vec<(Vec<u8>, bool)>,
}

impl Outbox<()> for Out<'_> {
    fn send(&mut self, (): &(), message: &Message<'_>) -> Result<(), Refused> {
        let is_error = matches!(message, Message::Error { .. });
        let args = message
            .payload()
            .map_or(Vec::new(), |payload| payload.args.to_vec());
        self.sent.push((args, is_error));
        Ok(())
    }

    fn publish(&mut self, _: &Message<'_>, _: &mut dyn Iterator<Item = &()>) {}
    fn close(&mut self, (): &(), _: crosstie_routing::CloseReason) {}

    fn record(&mut self, log: usize, event: Recorded) -> Result<(), Unrecorded> {
        self.keeper.record(log, event)
    }

    fn acknowledge(&mut self, acknowledgement: Acknowledgement) {
        self.keeper.acknowledge(acknowledgement);
    }

    fn recall(&mut self, recall: Recall) -> Result<(), &'static str> {
        self.keeper.recall(recall)
    }
}

/// A realm with a store, and somebody in it.
struct Rig {
    realm: Realm<()>,
    session: SessionKey,
    keeper: EventKeeper,
    said: mpsc::Receiver<Said>,
    gate: mpsc::Sender<mpsc::Receiver<()>>,
    requests: u64,
}

impl Rig {
    fn open(directory: &tempfile::TempDir, logs: Vec<Recording>, bytes_max: u64) -> Self {
        let store = EventStore::open(EventStoreConfig {
            path: directory.path().join("events.db"),
            realm: "realm1".to_owned(),
            logs: logs.clone(),
            bytes_max,
            is_synced: false,
        });
        let (sender, said) = mpsc::channel();
        let (gate, gates) = mpsc::channel();
        let owner = Arc::new(Owner {
            said: Mutex::new(sender),
            gates: Mutex::new(gates),
        });
        let keeper =
            EventKeeper::start(store.expect("a store"), 64 << 20, owner).expect("a thread");
        let mut config = RealmConfig::open("realm1");
        config.history = logs;
        config.is_stored = true;
        config.limits.history_answer_bytes_max = 64 << 20;
        let mut realm = Realm::new(config, 1);
        realm.set_epoch(1_000_000_000_000_000);
        let who = Identity::new("joe", "anonymous", "anonymous", "static");
        let joined = realm.join(Time(0), (), who, ClientFeatures::default());
        let (session, _) = joined.expect("may join");
        Self {
            realm,
            session,
            keeper,
            said,
            gate,
            requests: 0,
        }
    }

    fn handle(&mut self, message: &Message<'_>) -> Vec<(Vec<u8>, bool)> {
        let mut out = Out {
            keeper: &self.keeper,
            sent: Vec::new(),
        };
        let now = Time(self.requests);
        let handled = self.realm.handle(now, self.session, message, &mut out);
        handled.expect("no violation");
        out.sent
    }

    fn publish(&mut self, topic: &str, args: &str, acknowledge: bool) {
        self.requests += 1;
        let options = PublishOptions {
            acknowledge,
            ..PublishOptions::default()
        };
        let sent = self.handle(&Message::Publish {
            request: RequestId(self.requests),
            options,
            topic: topic.into(),
            payload: json(args.as_bytes(), b""),
        });
        assert!(sent.is_empty(), "answered before it is stored");
    }

    /// The arguments of the RESULT, or an error's.
    fn call(&mut self, procedure: &str, args: &str, kwargs: &str) -> Result<Value, Value> {
        self.requests += 1;
        let sent = self.handle(&Message::Call {
            request: RequestId(self.requests),
            options: CallOptions::default(),
            procedure: procedure.into(),
            payload: json(args.as_bytes(), kwargs.as_bytes()),
        });
        let (args, is_error) = match sent.into_iter().next() {
            Some(sent) => sent,
            None => self.recalled(),
        };
        let args = codec::decode_value(Serializer::Json, &args, &codec::Limits::default());
        let Ok(Value::List(mut args)) = args else {
            panic!("no list of arguments");
        };
        match is_error {
            true => Err(args.remove(0)),
            false => Ok(args.remove(0)),
        }
    }

    fn recalled(&mut self) -> (Vec<u8>, bool) {
        loop {
            let Said::Recalled(recalled) = self.said.recv().expect("the thread runs") else {
                continue;
            };
            let mut out = Out {
                keeper: &self.keeper,
                sent: Vec::new(),
            };
            self.realm.handle_recalled(Time(0), recalled, &mut out);
            return out.sent.remove(0);
        }
    }

    /// The first arguments of the events of a topic.
    fn events(&mut self, topic: &str, kwargs: &str) -> Vec<u64> {
        let found = self.ask(topic, kwargs).expect("a history");
        let Value::List(found) = found else {
            panic!("no list");
        };
        let first = |event: &Value| member(event, "args").and_then(|args| number(&args));
        found
            .iter()
            .map(|event| first(event).expect("args"))
            .collect()
    }

    fn ask(&mut self, topic: &str, kwargs: &str) -> Result<Value, Value> {
        let options = if topic.ends_with('.') {
            ",{\"match\":\"prefix\"}"
        } else {
            ""
        };
        let found = self.call(LOOKUP, &format!("[\"{topic}\"{options}]"), "");
        let id = found.expect("a subscription").as_u64().expect("an id");
        self.call(GET, &format!("[{id}]"), kwargs)
    }

    /// The publication at a place of the whole history.
    fn publication(&mut self, topic: &str, place: usize) -> u64 {
        let Ok(Value::List(found)) = self.ask(topic, "{\"reverse\":false}") else {
            panic!("no list");
        };
        let id = member(&found[place], "publication").and_then(|id| id.as_u64());
        id.expect("an id")
    }
}

fn json<'a>(args: &'a [u8], kwargs: &'a [u8]) -> Payload<'a> {
    Payload::new(Serializer::Json, args, kwargs)
}

fn member(value: &Value, name: &str) -> Option<Value> {
    let Value::Dict(members) = value else {
        return None;
    };
    let found = members.iter().find(|(known, _)| known == name);
    found.map(|(_, value)| value.clone())
}

fn number(args: &Value) -> Option<u64> {
    let Value::List(args) = args else {
        return None;
    };
    args.first()?.as_u64()
}

fn recording(uri: &str, match_policy: MatchPolicy, events_max: usize) -> Recording {
    Recording {
        uri: uri.to_owned(),
        match_policy,
        events_max,
        age_ms_max: 0,
    }
}

fn logs() -> Vec<Recording> {
    vec![
        recording("com.kept", MatchPolicy::Exact, 10_000),
        recording("com.", MatchPolicy::Prefix, 7),
    ]
}

fn directory() -> tempfile::TempDir {
    tempfile::tempdir().expect("a directory")
}

#[test]
fn searches_over_many_turns() {
    let directory = directory();
    let mut rig = Rig::open(&directory, logs(), 1 << 30);
    let all: Vec<u64> = (0..5_000).collect();
    for number in &all {
        rig.publish("com.kept", &format!("[{number}]"), false);
    }
    assert!(rig.events("com.kept", "{\"reverse\":false}") == all);
    let newest: Vec<u64> = all.iter().rev().copied().collect();
    assert!(rig.events("com.kept", "{\"reverse\":true}") == newest);
    assert_eq!(rig.events("com.kept", ""), newest[..10]);
    assert_eq!(rig.events("com.", "{\"reverse\":false}"), all[4_993..]);
    assert_eq!(rig.events("com.kept", "{\"topic\":\"com.none\"}"), []);
    let (first, last) = (
        rig.publication("com.kept", 100),
        rig.publication("com.kept", 4_000),
    );
    for (kwargs, expected) in [
        (format!("{{\"after_publication\":{last}}}"), 4_001..5_000),
        (format!("{{\"from_publication\":{last}}}"), 4_000..5_000),
        (format!("{{\"until_publication\":{first}}}"), 0..101),
        (format!("{{\"before_publication\":{first}}}"), 0..100),
        (
            format!("{{\"after_publication\":{first},\"before_publication\":{last}}}"),
            101..4_000,
        ),
        (
            format!("{{\"after_publication\":{last},\"before_publication\":{first}}}"),
            0..0,
        ),
        (
            format!("{{\"after_publication\":{first},\"limit\":5}}"),
            101..106,
        ),
        (
            "{\"after_time\":\"2001-09-09T01:46:40.004990Z\"}".to_owned(),
            4_990..5_000,
        ),
        (
            "{\"until_time\":\"2001-09-09T01:46:40.000010Z\"}".to_owned(),
            0..10,
        ),
    ] {
        let expected: Vec<u64> = expected.collect();
        assert!(rig.events("com.kept", &kwargs) == expected, "{kwargs}");
    }
    let missing = rig.ask("com.kept", "{\"after_publication\":4711}");
    let text = missing.expect_err("is not there");
    let text = text.as_str().expect("a text");
    assert!(text.contains("no publication 4711"), "{text}");
}

#[test]
fn bounds_hold_over_restarts() {
    let directory = directory();
    let few = vec![recording("com.kept", MatchPolicy::Exact, 3)];
    for round in 0..5_u64 {
        let mut rig = Rig::open(&directory, few.clone(), 1 << 30);
        for number in 0..2 {
            rig.publish("com.kept", &format!("[{}]", 2 * round + number), true);
            let Ok(Said::Stored(told, true)) = rig.said.recv() else {
                panic!("not stored");
            };
            assert_eq!(told.len(), 1);
        }
        let end = 2 * round + 2;
        let expected: Vec<u64> = (end.saturating_sub(3)..end).collect();
        assert_eq!(rig.events("com.kept", "{\"reverse\":false}"), expected);
    }
    // A history that is not configured any more is there when it is again.
    drop(Rig::open(&directory, Vec::new(), 1 << 30));
    let mut rig = Rig::open(&directory, few.clone(), 1 << 30);
    assert_eq!(rig.events("com.kept", "{\"reverse\":false}"), [7, 8, 9]);
    // One byte is room for none of them.
    drop(rig);
    let mut rig = Rig::open(&directory, few, 1);
    assert_eq!(rig.events("com.kept", ""), []);
}

#[test]
fn one_session_asks_no_more_than_it_may() {
    let directory = directory();
    let mut rig = Rig::open(&directory, logs(), 1 << 30);
    let id = rig
        .call(LOOKUP, "[\"com.kept\"]", "")
        .expect("a subscription");
    let args = format!("[{}]", id.as_u64().expect("an id"));
    // Nobody is answered meanwhile.
    let (sender, gate) = mpsc::channel();
    rig.gate.send(gate).expect("the thread runs");
    let (mut refused, mut waiting) = (0, 0);
    for _ in 0..100 {
        rig.requests += 1;
        let sent = rig.handle(&Message::Call {
            request: RequestId(rig.requests),
            options: CallOptions::default(),
            procedure: GET.into(),
            payload: json(args.as_bytes(), b""),
        });
        match sent.first() {
            None => waiting += 1,
            Some((_, is_error)) => refused += usize::from(*is_error),
        }
    }
    assert_eq!((waiting, refused), (16, 84));
    drop(sender);
    for _ in 0..waiting {
        assert!(!rig.recalled().1);
    }
    assert_eq!(rig.events("com.kept", ""), []);
}
