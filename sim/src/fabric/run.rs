//! One run: what sessions of several nodes do, what becomes of it, and whether that may be.

mod checks;

use std::collections::{BTreeMap, BTreeSet};

use crosstie_fabric::Ticked;
use crosstie_routing::{ClientFeatures, SessionKey, Time};
use crosstie_wamp::{
    MatchPolicy, Message, Payload, PublicationId, PublishOptions, RequestId, Serializer,
    SubscribeOptions, SubscriptionId,
};

use super::engine::{NodeIndex, Servers};
use super::node::{Heard, Node};
use crate::{Chance, Name};

/// What there is, and what may go wrong.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    pub nodes: usize,
    pub servers: usize,
    pub faults: bool,
}

pub struct Run {
    setting: Setting,
    chance: Chance,
    servers: Servers,
    nodes: BTreeMap<NodeIndex, Node>,
    sessions: BTreeMap<Name, Session>,
    publications: BTreeMap<PublicationId, Publication>,
    now: Time,
    name_last: Name,
    request_last: u64,
}

/// A session as itself sees it.
struct Session {
    node: NodeIndex,
    key: SessionKey,
    /// What it has been told that it is subscribed to.
    subscribed: BTreeMap<SubscriptionId, usize>,
    /// What it asked for and was not told yet, in order.
    asked: Vec<usize>,
    /// What it asked to end, in order.
    ending: Vec<SubscriptionId>,
    /// What it was sent.
    events: BTreeSet<(SubscriptionId, PublicationId)>,
    /// Of each publisher and subscription, the last one.
    last: BTreeMap<(Name, SubscriptionId), u64>,
}

struct Publication {
    by: Name,
    number: u64,
    topic: &'static str,
    /// Who had been told SUBSCRIBED when it was published.
    due: Vec<(Name, SubscriptionId)>,
}

const TOPICS: [&str; 5] = ["a", "a.b", "a.c", "a.b.c", "x.z.y"];

const PATTERNS: [(MatchPolicy, &str); 8] = [
    (MatchPolicy::Exact, "a.b"),
    (MatchPolicy::Exact, "a.c"),
    (MatchPolicy::Exact, "x.z.y"),
    (MatchPolicy::Prefix, "a."),
    (MatchPolicy::Prefix, "a.b"),
    (MatchPolicy::Prefix, ""),
    (MatchPolicy::Wildcard, "a."),
    (MatchPolicy::Wildcard, "..y"),
];

/// Of a tick. Without faults nothing takes so long that a node is given up.
const TICK_MS: u64 = 100;
const TICK_WITHOUT_FAULTS_MS: u64 = 10;

impl Run {
    pub fn new(seed: u64, setting: Setting) -> Self {
        let mut chance = Chance::new(seed);
        let mut servers = Servers::new(setting.servers);
        let mut nodes = BTreeMap::new();
        for index in 0..setting.nodes {
            nodes.insert(index, Node::new(index as u64 + 1, chance.number()));
            servers.connect(index, chance.below(setting.servers));
        }
        let mut run = Self {
            setting,
            chance,
            servers,
            nodes,
            sessions: BTreeMap::new(),
            publications: BTreeMap::new(),
            now: Time(1_000_000),
            name_last: 0,
            request_last: 0,
        };
        for index in 0..setting.nodes {
            run.attach(index);
        }
        run
    }

    /// Plays so many steps, then lets all that is under way arrive; how many events came from other nodes.
    pub fn play(mut self, steps: usize) -> usize {
        self.quiet();
        for _ in 0..self.setting.nodes * 2 {
            self.join();
        }
        for _ in 0..steps {
            match self.chance.below(16) {
                0 => self.tick(),
                1 => self.subscribe(),
                2 => self.unsubscribe(),
                3 | 4 => self.publish(),
                5 if self.setting.faults && self.chance.one_in(8) => self.fail(),
                6 if self.chance.one_in(4) => self.join(),
                7 if self.chance.one_in(8) => self.leave(),
                _ => {
                    self.step();
                }
            }
        }
        self.quiet();
        if !self.setting.faults {
            self.check_all_came();
        }
        self.check_all_is_well();
        self.count_crossed()
    }

    fn attach(&mut self, index: NodeIndex) {
        let (Some(node), Some(client)) = (
            self.nodes.get_mut(&index),
            self.servers.clients.get_mut(&index),
        ) else {
            return;
        };
        let server = format!("server{}", client.server);
        node.member.attach(self.now, (&server, 1 << 20), client);
    }

    fn step(&mut self) -> bool {
        let Some(told) = self.servers.step(&mut self.chance) else {
            return false;
        };
        if let Some((index, told)) = told
            && let Some(node) = self.nodes.get_mut(&index)
            && let Some(client) = self.servers.clients.get_mut(&index)
        {
            node.told(self.now, client, &told);
            self.hear(index);
        }
        true
    }

    fn tick(&mut self) {
        let tick_ms = match self.setting.faults {
            true => TICK_MS,
            false => TICK_WITHOUT_FAULTS_MS,
        };
        self.now = self.now.after_ms(tick_ms);
        for index in 0..self.setting.nodes {
            let Some(node) = self.nodes.get_mut(&index) else {
                continue;
            };
            let client = self.servers.clients.get_mut(&index);
            let ticked = node.tick(self.now, client);
            self.hear(index);
            let is_cut = !self.servers.clients.contains_key(&index);
            if ticked == Ticked::Silent {
                self.detach(index);
            } else if is_cut && self.chance.one_in(3) {
                let server = self.chance.below(self.setting.servers);
                self.servers.connect(index, server);
                self.attach(index);
            }
        }
    }

    /// Lets everything arrive, and everybody find each other.
    fn quiet(&mut self) {
        for _ in 0..80 {
            while self.step() {}
            self.tick();
        }
        while self.step() {}
    }

    fn detach(&mut self, index: NodeIndex) {
        self.servers.cut(index);
        if let Some(node) = self.nodes.get_mut(&index) {
            node.member.detach();
            node.settle(self.now, None);
            self.hear(index);
        }
    }

    fn fail(&mut self) {
        let index = self.chance.below(self.setting.nodes);
        match self.chance.below(3) {
            0 => self.detach(index),
            1 if self.setting.servers > 1 => {
                let from = self.chance.below(self.setting.servers);
                let to = (from + 1) % self.setting.servers;
                self.servers.cut_route(from, to);
            }
            // It is killed, and another one begins in its place.
            _ => {
                self.servers.cut(index);
                self.sessions.retain(|_, session| session.node != index);
                let (incarnation, seed) = (self.chance.number(), self.chance.number());
                self.nodes.insert(index, Node::new(incarnation, seed));
            }
        }
    }

    fn join(&mut self) {
        let index = self.chance.below(self.setting.nodes);
        let Some(node) = self.nodes.get_mut(&index) else {
            return;
        };
        self.name_last += 1;
        let key = node.join(self.now, self.name_last, ClientFeatures::default());
        let session = Session {
            node: index,
            key,
            subscribed: BTreeMap::new(),
            asked: Vec::new(),
            ending: Vec::new(),
            events: BTreeSet::new(),
            last: BTreeMap::new(),
        };
        self.sessions.insert(self.name_last, session);
    }

    fn leave(&mut self) {
        let names: Vec<_> = self.sessions.keys().copied().collect();
        let Some(name) = self.chance.pick_any(&names) else {
            return;
        };
        let Some(session) = self.sessions.remove(&name) else {
            return;
        };
        let client = self.servers.clients.get_mut(&session.node);
        if let Some(node) = self.nodes.get_mut(&session.node) {
            node.leave(self.now, client, session.key);
            self.hear(session.node);
        }
    }

    fn subscribe(&mut self) {
        let pattern = self.chance.below(PATTERNS.len());
        let (match_policy, topic) = PATTERNS[pattern];
        let Some(name) = self.somebody() else {
            return;
        };
        if let Some(session) = self.sessions.get_mut(&name) {
            session.asked.push(pattern);
        }
        let request = self.request();
        let options = SubscribeOptions {
            match_policy,
            ..SubscribeOptions::default()
        };
        self.say(
            name,
            &Message::Subscribe {
                request,
                options,
                topic: topic.into(),
            },
        );
    }

    fn unsubscribe(&mut self) {
        let Some(name) = self.somebody() else {
            return;
        };
        let request = self.request();
        let Some(session) = self.sessions.get_mut(&name) else {
            return;
        };
        let ids: Vec<_> = session.subscribed.keys().copied().collect();
        let Some(subscription) = self.chance.pick_any(&ids) else {
            return;
        };
        session.ending.push(subscription);
        let unsubscribe = Message::Unsubscribe {
            request,
            subscription,
        };
        self.say(name, &unsubscribe);
    }

    fn publish(&mut self) {
        let Some(name) = self.somebody() else {
            return;
        };
        let topic = self.chance.pick(&TOPICS);
        let mut due = Vec::new();
        for (other, session) in &self.sessions {
            let matching = session.subscribed.iter().filter(|(_, pattern)| {
                let (policy, pattern) = PATTERNS[**pattern];
                *other != name && is_match(policy, pattern, topic)
            });
            due.extend(matching.map(|(id, _)| (*other, *id)));
        }
        let RequestId(number) = self.request();
        let args = format!("[{number}]");
        let publish = Message::Publish {
            request: RequestId(number),
            options: PublishOptions {
                acknowledge: true,
                ..PublishOptions::default()
            },
            topic: topic.into(),
            payload: Payload {
                serializer: Serializer::Json,
                args: args.as_bytes(),
                kwargs: b"",
            },
        };
        let publication = Publication {
            by: name,
            number,
            topic,
            due,
        };
        let Some(id) = self.say_publish(name, &publish) else {
            return;
        };
        self.publications.insert(id, publication);
        let node = self.sessions.get(&name).map(|session| session.node);
        node.into_iter().for_each(|node| self.hear(node));
    }

    /// Says it, and finds the publication's id before its events are looked at.
    fn say_publish(&mut self, name: Name, message: &Message<'_>) -> Option<PublicationId> {
        let session = self.sessions.get(&name)?;
        let client = self.servers.clients.get_mut(&session.node);
        let node = self.nodes.get_mut(&session.node)?;
        node.handle(self.now, client, session.key, message);
        node.heard.iter().find_map(|(_, heard)| match heard {
            Heard::Published(id) => Some(*id),
            _ => None,
        })
    }

    fn say(&mut self, name: Name, message: &Message<'_>) {
        let Some(session) = self.sessions.get(&name) else {
            return;
        };
        let index = session.node;
        let client = self.servers.clients.get_mut(&index);
        if let Some(node) = self.nodes.get_mut(&index) {
            node.handle(self.now, client, session.key, message);
            self.hear(index);
        }
    }

    /// Judges what a node has told its sessions.
    fn hear(&mut self, index: NodeIndex) {
        let Some(node) = self.nodes.get_mut(&index) else {
            return;
        };
        for (name, heard) in std::mem::take(&mut node.heard) {
            let Some(session) = self.sessions.get_mut(&name) else {
                continue;
            };
            match heard {
                Heard::Published(_) => {}
                Heard::Subscribed(id) => {
                    // Answers to different patterns may come in another order than they were asked for.
                    let known = session.subscribed.get(&id).copied();
                    let node = &node.realm;
                    let pattern = known.or_else(|| pattern_of(node, id));
                    let pattern = pattern.expect("it is subscribed to something");
                    let place = session.asked.iter().position(|asked| *asked == pattern);
                    session.asked.remove(place.expect("it asked for that"));
                    session.subscribed.insert(id, pattern);
                }
                Heard::Unsubscribed => {
                    let id = session.ending.remove(0);
                    session.subscribed.remove(&id);
                    // From others of the same subscription it may get that number again.
                    for publication in self.publications.values_mut() {
                        publication.due.retain(|due| *due != (name, id));
                    }
                    session.last.retain(|(_, other), _| *other != id);
                }
                Heard::Event(id, publication) => {
                    let pattern = session.subscribed.get(&id);
                    let pattern = *pattern.expect("no event before SUBSCRIBED or after its end");
                    let known = &self.publications[&publication];
                    let (policy, pattern) = PATTERNS[pattern];
                    assert!(is_match(policy, pattern, known.topic));
                    let is_new = session.events.insert((id, publication));
                    assert!(is_new, "no event comes twice");
                    let last = session.last.insert((known.by, id), known.number);
                    assert!(
                        last < Some(known.number),
                        "a publisher's events are in order"
                    );
                }
                other => panic!("nobody asked for {other:?}"),
            }
        }
    }

    fn somebody(&mut self) -> Option<Name> {
        let names: Vec<_> = self.sessions.keys().copied().collect();
        self.chance.pick_any(&names)
    }

    fn request(&mut self) -> RequestId {
        self.request_last += 1;
        RequestId(self.request_last)
    }
}

/// What a realm says that a subscription is for.
fn pattern_of(realm: &crosstie_routing::Realm<Name>, id: SubscriptionId) -> Option<usize> {
    let (policy, topic) = realm.subscription(id)?;
    let known = |(known, pattern): &(MatchPolicy, &str)| (*known, *pattern) == (policy, topic);
    PATTERNS.iter().position(known)
}

fn is_match(policy: MatchPolicy, pattern: &str, topic: &str) -> bool {
    match policy {
        MatchPolicy::Exact => pattern == topic,
        MatchPolicy::Prefix => topic.starts_with(pattern),
        MatchPolicy::Wildcard => {
            let (pattern, topic) = (pattern.split('.'), topic.split('.'));
            let (pattern, topic): (Vec<_>, Vec<_>) = (pattern.collect(), topic.collect());
            let is_same = |(one, other): (&&str, &&str)| one.is_empty() || one == other;
            pattern.len() == topic.len() && pattern.iter().zip(&topic).all(is_same)
        }
    }
}
