//! Mirroring and carrying, tested by scripts of two realms' messages.

use std::collections::{HashMap, VecDeque};

use crosstie_rlinks::{Count, End, Kind, Link, Outbox, Settings, Side};
use crosstie_wamp::codec::{self, Limits};
use crosstie_wamp::{
    Dict, EventDetails, Message, Payload, PublicationId, RegistrationId, ResultDetails, Serializer,
    SessionId, SubscriptionId, Value,
};

const JSON: Serializer = Serializer::Json;
/// The link's own sessions.
const OWN: [u64; 2] = [100, 200];

/// Two realms that accept everything, and record the messages.
#[derive(Default)]
struct Realms {
    said: Vec<String>,
    answers: VecDeque<(Side, Vec<u8>)>,
    ids: HashMap<(Side, String), u64>,
}

impl Realms {
    fn id(&mut self, side: Side, what: &str) -> u64 {
        let next = self.ids.len() as u64 + 1;
        *self.ids.entry((side, what.to_owned())).or_insert(next)
    }

    fn answer(&mut self, side: Side, message: &Message<'_>) {
        let mut bytes = Vec::new();
        codec::encode(message, JSON, &mut bytes).unwrap();
        self.answers.push_back((side, bytes));
    }
}

impl Outbox for Realms {
    fn say(&mut self, side: Side, message: &Message<'_>) -> Result<(), String> {
        let at = side.name();
        match message {
            Message::Subscribe { request, topic, .. } => {
                let subscription = SubscriptionId(self.id(side, topic));
                let request = *request;
                self.answer(
                    side,
                    &Message::Subscribed {
                        request,
                        subscription,
                    },
                );
                if topic.starts_with("com.") {
                    self.said.push(format!("{at} SUBSCRIBE {topic}"));
                }
            }
            Message::Register {
                request, procedure, ..
            } => {
                let registration = RegistrationId(self.id(side, procedure));
                let request = *request;
                self.answer(
                    side,
                    &Message::Registered {
                        request,
                        registration,
                    },
                );
                self.said.push(format!("{at} REGISTER {procedure}"));
            }
            Message::Unsubscribe { request, .. } => {
                let (request, revoked) = (*request, None);
                self.answer(side, &Message::Unsubscribed { request, revoked });
                self.said.push(format!("{at} UNSUBSCRIBE"));
            }
            Message::Unregister { request, .. } => {
                let (request, revoked) = (*request, None);
                self.answer(side, &Message::Unregistered { request, revoked });
                self.said.push(format!("{at} UNREGISTER"));
            }
            Message::Call {
                request, procedure, ..
            } if procedure.ends_with(".list") => {
                self.answer(
                    side,
                    &Message::Result {
                        request: *request,
                        details: ResultDetails::default(),
                        payload: payload(b"[{\"exact\":[],\"prefix\":[],\"wildcard\":[]}]"),
                    },
                );
            }
            Message::Publish { topic, options, .. } if topic.starts_with("com.") => {
                let behind = options.passthru.iter().flat_map(|dict| dict.iter());
                let behind: usize = behind
                    .map(|(_, value)| match value {
                        Value::List(list) => list.len(),
                        _ => 0,
                    })
                    .sum();
                self.said.push(format!("{at} PUBLISH {topic} for {behind}"));
            }
            _ => {}
        }
        Ok(())
    }

    fn count(&mut self, what: Count) {
        if let Count::EventsReturned | Count::MirrorsBeyond = what {
            self.said.push(format!("{what:?}"));
        }
    }

    fn warn(&mut self, text: &str) {
        self.said.push(text.to_owned());
    }
}

fn payload(args: &[u8]) -> Payload<'_> {
    Payload::new(JSON, args, &[])
}

struct Rig {
    link: Link,
    realms: Realms,
}

impl Rig {
    fn start(mirrored: [[bool; 2]; 2], mirrors_max: usize) -> Self {
        let settings = Settings {
            mirrored,
            exclude_authid: Vec::new(),
            mirrors_max,
            calls_max: 10,
            forward_for_max: 4,
        };
        let end = |side: Side| End {
            session: SessionId(OWN[side as usize]),
            authid: "link".to_owned(),
            authrole: "trusted".to_owned(),
            realm: side.name().to_owned(),
            serializer: JSON,
        };
        let mut rig = Self {
            link: Link::new(settings, Side::BOTH.map(end)),
            realms: Realms::default(),
        };
        rig.link.start(&mut rig.realms).unwrap();
        rig.settle();
        assert!(rig.link.is_ready());
        rig
    }

    /// Answers all requests in both realms.
    fn settle(&mut self) {
        while let Some((side, bytes)) = self.realms.answers.pop_front() {
            let message = codec::decode(JSON, &bytes, &Limits::default()).unwrap();
            self.link.handle(side, message, &mut self.realms).unwrap();
        }
    }

    fn event(&mut self, side: Side, topic: &str, args: &str, passthru: Option<Box<Dict>>) {
        let subscription = SubscriptionId(self.realms.id(side, topic));
        let message = Message::Event {
            subscription,
            publication: PublicationId(9),
            details: EventDetails {
                passthru,
                ..EventDetails::default()
            },
            payload: payload(args.as_bytes()),
        };
        self.link.handle(side, message, &mut self.realms).unwrap();
        self.settle();
    }

    /// `remote sub 7 com.t`, `local unreg 7 com.p`, `remote link 8 com.t a,b`, `local event com.t 1,2`.
    fn step(&mut self, step: &str) {
        let words: Vec<&str> = step.split(' ').collect();
        let side = match words[0] {
            "local" => Side::Local,
            _ => Side::Remote,
        };
        let (topics, verb) = match words[1].ends_with("reg") {
            true => ("wamp.registration", ["on_register", "on_unregister"]),
            false => ("wamp.subscription", ["on_subscribe", "on_unsubscribe"]),
        };
        match words[1] {
            "sub" | "reg" => {
                let uri = words[3];
                let id = self.realms.id(side, uri) + 1_000;
                let entry = format!(r#"{{"id":{id},"uri":"{uri}","match":"exact"}}"#);
                let created = format!("[{},{entry}]", words[2]);
                self.event(side, &format!("{topics}.on_create"), &created, None);
                let entered = format!("[{},{id}]", words[2]);
                self.event(side, &format!("{topics}.{}", verb[0]), &entered, None);
            }
            "unsub" | "unreg" => {
                let id = self.realms.id(side, words[3]) + 1_000;
                let exited = format!("[{},{id}]", words[2]);
                self.event(side, &format!("{topics}.{}", verb[1]), &exited, None);
            }
            "link" => {
                let path: Vec<_> = words[4].split(',').map(|r| format!("\"{r}\"")).collect();
                let told = format!(
                    r#"[{},[["subscription","exact","{}",[{}]]]]"#,
                    words[2],
                    words[3],
                    path.join(",")
                );
                self.event(side, "crosstie.rlink.on_mirror", &told, None);
            }
            _ => {
                let sessions = words.get(3).into_iter().flat_map(|list| list.split(','));
                let behind = sessions.map(|session| {
                    let number: u64 = session.parse().unwrap();
                    let text = |key: &str| (key.to_owned(), Value::from("x"));
                    let session = ("session".to_owned(), Value::from(number));
                    Value::Dict(vec![session, text("authid"), text("authrole")])
                });
                let list = Value::List(behind.collect());
                let passthru = vec![("forward_for".to_owned(), list)];
                self.event(side, words[2], "[1]", Some(Box::new(passthru)));
            }
        }
    }
}

#[track_caller]
fn check(rig: &mut Rig, script: &[(&str, &[&str])]) {
    for (step, said) in script {
        rig.realms.said.clear();
        rig.step(step);
        assert_eq!(rig.realms.said, *said, "after {step}");
    }
}

const ALL: [[bool; 2]; 2] = [[true; 2]; 2];

#[test]
fn subscriptions_and_registrations_are_mirrored_while_held() {
    let mut rig = Rig::start(ALL, 100);
    check(
        &mut rig,
        &[
            ("remote sub 7 com.t", &["local SUBSCRIBE com.t"]),
            // The link's own mirror does not cause another one.
            ("local sub 100 com.t", &[]),
            ("remote sub 8 com.t", &[]),
            ("remote unsub 7 com.t", &[]),
            ("remote unsub 8 com.t", &["local UNSUBSCRIBE"]),
            ("local reg 5 com.p", &["remote REGISTER com.p"]),
            ("local unreg 5 com.p", &["remote UNREGISTER"]),
            // A realm's own URIs are never mirrored.
            ("remote sub 7 crosstie.x", &[]),
        ],
    );
}

#[test]
fn a_procedure_of_both_sides_is_not_mirrored() {
    let mut rig = Rig::start(ALL, 100);
    check(
        &mut rig,
        &[
            ("local reg 5 com.p", &["remote REGISTER com.p"]),
            ("remote reg 200 com.p", &[]),
            ("remote reg 6 com.p", &["remote UNREGISTER"]),
            ("remote unreg 200 com.p", &[]),
            ("remote unreg 6 com.p", &["remote REGISTER com.p"]),
        ],
    );
}

#[test]
fn closed_directions_are_closed() {
    let mut rig = Rig::start([[true, false], [false, true]], 100);
    check(
        &mut rig,
        &[
            ("remote sub 7 com.t", &[]),
            ("local sub 7 com.t", &["remote SUBSCRIBE com.t"]),
            ("local reg 7 com.p", &[]),
            ("remote reg 7 com.q", &["local REGISTER com.q"]),
        ],
    );
}

#[test]
fn mirrors_of_other_links_are_mirrored_unless_they_came_from_there() {
    let mut rig = Rig::start(ALL, 100);
    check(
        &mut rig,
        &[
            ("remote link 8 com.t far", &[]),
            ("remote sub 8 com.t", &["local SUBSCRIBE com.t"]),
            ("remote link 8 com.t local,far", &["local UNSUBSCRIBE"]),
            ("remote sub 9 com.t", &["local SUBSCRIBE com.t"]),
            // A link from the same realm with a lower session id.
            ("local sub 100 com.t", &[]),
            ("local link 3 com.t remote", &[]),
            ("local sub 3 com.t", &["local UNSUBSCRIBE"]),
            ("local unsub 100 com.t", &[]),
            ("local unsub 3 com.t", &["local SUBSCRIBE com.t"]),
        ],
    );
}

#[test]
fn returning_and_far_travelled_events_are_not_carried() {
    let mut rig = Rig::start(ALL, 100);
    check(
        &mut rig,
        &[
            ("remote sub 7 com.t", &["local SUBSCRIBE com.t"]),
            ("local event com.t", &["remote PUBLISH com.t for 1"]),
            ("local event com.t 5,6", &["remote PUBLISH com.t for 3"]),
            ("local event com.t 5,200", &["EventsReturned"]),
            ("local event com.t 5,100", &["EventsReturned"]),
            ("local event com.t 1,2,3,4", &["EventsReturned"]),
        ],
    );
}

#[test]
fn the_number_of_mirrors_is_bounded() {
    let mut rig = Rig::start(ALL, 2);
    check(
        &mut rig,
        &[
            ("remote sub 7 com.a", &["local SUBSCRIBE com.a"]),
            ("remote sub 7 com.b", &["local SUBSCRIBE com.b"]),
            ("remote sub 7 com.c", &["MirrorsBeyond", "MirrorsBeyond"]),
        ],
    );
    assert_eq!(rig.link.held(Side::Local, Kind::Subscription), 2);
}

/// The link accepts any input of a router, or ends.
#[test]
fn invalid_input_is_ignored_or_ends_the_link() {
    let rows = [
        "[36,1,1,{},[]]",
        "[36,2,1,{},[null,{\"id\":-1}]]",
        "[36,3,1,{},[1,\"x\"]]",
        "[36,9,1,{},[5,[[\"subscription\"],[1,2,3,4],null]]]",
        "[50,1,{},[1]]",
        "[50,6,{},[{\"exact\":\"x\"}]]",
        "[8,48,6,{},\"com.x\"]",
        "[8,32,1,{},\"com.x\"]",
        "[33,1,7]",
        "[35,0,{\"subscription\":1}]",
        "[67,0,{\"registration\":1}]",
        "[68,1,1,{}]",
        "[69,1,{}]",
        "[17,1,1]",
        "[2,1,{}]",
        "[6,{},\"wamp.close.normal\"]",
    ];
    for row in rows {
        for times in 1..3 {
            let mut rig = Rig::start(ALL, 10);
            for _ in 0..times {
                let message = codec::decode(JSON, row.as_bytes(), &Limits::default()).unwrap();
                let _ = rig.link.handle(Side::Remote, message, &mut rig.realms);
            }
        }
    }
}
