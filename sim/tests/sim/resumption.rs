//! Acknowledged delivery over connections that end at any moment, judged by a naive list: each subscriber must have had
//! every publication that its subscriptions match, for the first time in their order, whatever was lost between them.

use std::collections::{HashMap, VecDeque};

use crosstie_routing::{
    ClientFeatures, CloseReason, Identity, Outbox, Realm, RealmConfig, Refused, Resumption,
    SessionKey, Time,
};
use crosstie_sim::Chance;
use crosstie_wamp::{
    MatchPolicy, Message, Payload, PublicationId, PublishOptions, RequestId, Serializer, SessionId,
    SubscribeOptions,
};

const SUBSCRIBERS: usize = 3;
const TOPICS: [&str; 3] = ["a.b", "a.c", "b.c"];
const SUBSCRIBED: [(MatchPolicy, &str); 3] = [
    (MatchPolicy::Exact, "a.b"),
    (MatchPolicy::Prefix, "a"),
    (MatchPolicy::Wildcard, ".c"),
];
const WINDOW_MS: u64 = 1_000;
const OPERATIONS: usize = 400;
const SEEDS: u64 = 60;

/// An event as a subscriber is sent it: subscription, publication, number.
type Event = (u64, u64, u64);

/// The connections: what is on its way to each, and not read yet. They take so much, and then no more.
#[derive(Default)]
struct Wires {
    open: HashMap<usize, VecDeque<Event>>,
    room: usize,
    subscribed: Option<u64>,
}

impl Outbox<usize> for Wires {
    fn send(&mut self, to: &usize, message: &Message<'_>) -> Result<(), Refused> {
        let Some(wire) = self.open.get_mut(to) else {
            return Err(Refused::Gone);
        };
        match message {
            Message::Event {
                subscription,
                publication,
                details,
                payload,
            } => {
                if wire.len() >= self.room {
                    return Err(Refused::Full);
                }
                assert!(details.acknowledged_delivery);
                wire.push_back((subscription.0, publication.0, number(payload.args)));
            }
            Message::Subscribed { subscription, .. } => self.subscribed = Some(subscription.0),
            other => panic!("{other:?}"),
        }
        Ok(())
    }

    fn publish(&mut self, _: &Message<'_>, receivers: &mut dyn Iterator<Item = &usize>) {
        assert_eq!(receivers.count(), 0, "everybody acknowledges");
    }

    fn close(&mut self, session: &usize, reason: CloseReason) {
        panic!("{session} is closed: {reason:?}");
    }

    fn resumed(&mut self, before: &usize, _: &usize) {
        self.open.remove(before);
    }
}

fn number(args: &[u8]) -> u64 {
    let text = std::str::from_utf8(args).expect("is JSON");
    text.trim_matches(['[', ']'])
        .parse()
        .expect("is one number")
}

/// A client with a session that it may resume, and all that it must have had.
struct Subscriber {
    id: SessionId,
    key: SessionKey,
    /// `None` while it is cut off.
    wire: Option<usize>,
    subscriptions: Vec<(u64, MatchPolicy, &'static str)>,
    /// Subscription and number, in order.
    expected: Vec<(u64, u64)>,
    /// The same as it has had them, each once.
    had: Vec<(u64, u64)>,
    /// Publications that it has read and not acknowledged, one for each event.
    read: Vec<u64>,
}

struct Case {
    realm: Realm<usize>,
    wires: Wires,
    publisher: SessionKey,
    subscribers: Vec<Subscriber>,
    wires_made: usize,
    published: u64,
    requests: u64,
    now_ms: u64,
}

fn identity() -> Identity {
    Identity::new("ann", "anonymous", "ticket", "static")
}

fn fits(policy: MatchPolicy, pattern: &str, topic: &str) -> bool {
    match policy {
        MatchPolicy::Exact => pattern == topic,
        MatchPolicy::Prefix => topic.starts_with(pattern),
        MatchPolicy::Wildcard => topic.ends_with(pattern),
    }
}

impl Case {
    fn new(chance: &mut Chance) -> Self {
        let mut config = RealmConfig::open("realm1");
        config.resumption = Some(Resumption {
            window_ms: WINDOW_MS,
            sessions_max: SUBSCRIBERS,
        });
        let mut realm = Realm::new(config, chance.number());
        let joined = realm.join(Time(0), 0, identity(), ClientFeatures::default());
        let mut case = Self {
            publisher: joined.expect("is open").0,
            realm,
            wires: Wires {
                room: chance.pick(&[1, 3, 100]),
                ..Wires::default()
            },
            subscribers: Vec::new(),
            wires_made: 0,
            published: 0,
            requests: 0,
            now_ms: 0,
        };
        for _ in 0..SUBSCRIBERS {
            let subscriber = case.join(chance);
            case.subscribers.push(subscriber);
        }
        case
    }

    fn now(&self) -> Time {
        Time(self.now_ms * 1_000)
    }

    fn new_wire(&mut self) -> usize {
        self.wires_made += 1;
        self.wires.open.insert(self.wires_made, VecDeque::new());
        self.wires_made
    }

    fn handle(&mut self, from: SessionKey, message: &Message<'_>) {
        let now = self.now();
        let handled = self.realm.handle(now, from, message, &mut self.wires);
        handled.expect("is no violation");
        self.realm.check_invariants();
    }

    /// A new session, subscribed to some of what there is.
    fn join(&mut self, chance: &mut Chance) -> Subscriber {
        let wire = self.new_wire();
        let (now, features) = (self.now(), ClientFeatures::default());
        let joined = self.realm.join(now, wire, identity(), features);
        let (key, id) = joined.expect("is open");
        self.realm.keep_resumable(key, [7; 32]);
        let mut subscriptions = Vec::new();
        for (match_policy, topic) in SUBSCRIBED {
            if chance.one_in(3) && !subscriptions.is_empty() {
                continue;
            }
            self.requests += 1;
            let subscribe = Message::Subscribe {
                request: RequestId(self.requests),
                options: SubscribeOptions {
                    match_policy,
                    acknowledged_delivery: true,
                    ..SubscribeOptions::default()
                },
                topic: topic.into(),
            };
            self.handle(key, &subscribe);
            let subscription = self.wires.subscribed.take().expect("is answered");
            subscriptions.push((subscription, match_policy, topic));
        }
        Subscriber {
            id,
            key,
            wire: Some(wire),
            subscriptions,
            expected: Vec::new(),
            had: Vec::new(),
            read: Vec::new(),
        }
    }

    fn publish(&mut self, chance: &mut Chance) {
        let topic = chance.pick(&TOPICS);
        self.published += 1;
        let args = format!("[{}]", self.published);
        let publish = Message::Publish {
            request: RequestId(self.published),
            options: PublishOptions::default(),
            topic: topic.into(),
            payload: Payload::new(Serializer::Json, args.as_bytes(), &[]),
        };
        for subscriber in &mut self.subscribers {
            for (subscription, policy, pattern) in &subscriber.subscriptions {
                if fits(*policy, pattern, topic) {
                    subscriber.expected.push((*subscription, self.published));
                }
            }
        }
        self.handle(self.publisher, &publish);
    }

    /// Reads one event, if there is one; whether there was.
    fn read(&mut self, of: usize) -> bool {
        let subscriber = &mut self.subscribers[of];
        let wire = subscriber
            .wire
            .and_then(|wire| self.wires.open.get_mut(&wire));
        let Some((subscription, publication, number)) = wire.and_then(VecDeque::pop_front) else {
            return false;
        };
        if !subscriber.had.contains(&(subscription, number)) {
            subscriber.had.push((subscription, number));
        }
        subscriber.read.push(publication);
        true
    }

    /// Acknowledges one of the events that it has read.
    fn acknowledge(&mut self, of: usize, chance: &mut Chance) {
        let subscriber = &mut self.subscribers[of];
        if subscriber.wire.is_none() || subscriber.read.is_empty() {
            return;
        }
        let place = chance.below(subscriber.read.len());
        let publication = PublicationId(subscriber.read.remove(place));
        let key = subscriber.key;
        self.handle(key, &Message::EventReceived { publication });
    }

    /// The connection ends: what was on its way is lost both ways.
    fn cut(&mut self, of: usize) {
        let subscriber = &mut self.subscribers[of];
        let Some(wire) = subscriber.wire.take() else {
            return;
        };
        subscriber.read.clear();
        self.wires.open.remove(&wire);
        let key = subscriber.key;
        let now = self.now();
        assert!(self.realm.detach(now, key, &mut self.wires));
        self.realm.check_invariants();
    }

    /// Comes back, cut off before or not noticed to be.
    fn resume(&mut self, of: usize, chance: &mut Chance) {
        let id = self.subscribers[of].id;
        let features = ClientFeatures::default();
        if chance.one_in(4) {
            let who = (&identity(), features);
            let stolen = self.realm.resume(id, who, 0, |_| false, &mut self.wires);
            assert_eq!(stolen, None);
        }
        let wire = self.new_wire();
        let who = (&identity(), features);
        let is_token = |token: &[u8; 32]| *token == [7; 32];
        let resumed = self.realm.resume(id, who, wire, is_token, &mut self.wires);
        let (key, _) = resumed.expect("waits for its client");
        let subscriber = &mut self.subscribers[of];
        (subscriber.key, subscriber.wire) = (key, Some(wire));
        subscriber.read.clear();
        let now = self.now();
        self.realm.deliver_again(now, key, &mut self.wires);
        self.realm.check_invariants();
    }

    /// Time passes; who has waited too long is given up, and joins as somebody new.
    fn pass(&mut self, chance: &mut Chance, by_ms: u64) {
        self.now_ms += by_ms;
        let now = self.now();
        self.realm.handle_timeout(now, &mut self.wires);
        self.realm.check_invariants();
        for of in 0..SUBSCRIBERS {
            let subscriber = &self.subscribers[of];
            if subscriber.wire.is_some() || by_ms <= WINDOW_MS {
                continue;
            }
            let who = (&identity(), ClientFeatures::default());
            let (id, any) = (subscriber.id, |_: &[u8; 32]| true);
            let resumed = self.realm.resume(id, who, 0, any, &mut self.wires);
            assert_eq!(resumed, None, "its time is over");
            self.subscribers[of] = self.join(chance);
        }
    }

    fn check(&self, seed: u64) {
        for subscriber in &self.subscribers {
            // Of one publication under several subscriptions the order is not promised.
            let numbers = |all: &[(u64, u64)]| all.iter().map(|(_, n)| *n).collect::<Vec<_>>();
            assert!(numbers(&subscriber.had).is_sorted(), "seed {seed}");
            let Subscriber { had, expected, .. } = subscriber;
            let lost: Vec<_> = expected
                .iter()
                .filter(|event| !had.contains(event))
                .collect();
            assert!(lost.is_empty(), "seed {seed}: {lost:?} are lost");
            assert_eq!(had.len(), expected.len(), "seed {seed}");
        }
    }
}

fn run(seed: u64) {
    let mut chance = Chance::new(seed);
    let mut case = Case::new(&mut chance);
    for _ in 0..OPERATIONS {
        let of = chance.below(SUBSCRIBERS);
        match chance.below(20) {
            0..7 => case.publish(&mut chance),
            7..11 => drop(case.read(of)),
            11..15 => case.acknowledge(of, &mut chance),
            15 | 16 => case.cut(of),
            17 | 18 => case.resume(of, &mut chance),
            _ => {
                // What is cut off is either well within its time or clearly beyond it.
                let by_ms = match chance.one_in(6) {
                    true => 2 * WINDOW_MS,
                    false => 0,
                };
                case.pass(&mut chance, by_ms);
            }
        }
    }
    for of in 0..SUBSCRIBERS {
        case.resume(of, &mut chance);
        loop {
            while case.read(of) {}
            if case.subscribers[of].read.is_empty() {
                break;
            }
            case.acknowledge(of, &mut chance);
        }
    }
    case.check(seed);
}

#[test]
fn nothing_is_lost_within_the_window() {
    (0..SEEDS).for_each(run);
}
