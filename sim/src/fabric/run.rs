//! One run: what sessions of several nodes do, what becomes of it, and whether that may be.

mod checks;

use std::collections::{BTreeMap, BTreeSet};

use crosstie_routing::{ClientFeatures, SessionKey};
use crosstie_wamp::{
    MatchPolicy, Message, Payload, PublicationId, PublishOptions, RequestId, Serializer,
    SubscribeOptions, SubscriptionId,
};

use super::cluster::{Cluster, Play, Setting};
use super::engine::NodeIndex;
use super::node::Heard;
use crate::Name;

pub struct Run {
    cluster: Cluster,
    sessions: BTreeMap<Name, Session>,
    publications: BTreeMap<PublicationId, Publication>,
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

impl Run {
    pub fn new(seed: u64, setting: Setting) -> Self {
        Self {
            cluster: Cluster::new(seed, setting),
            sessions: BTreeMap::new(),
            publications: BTreeMap::new(),
        }
    }

    /// Plays so many steps, then lets all that is under way arrive; how many events came from other nodes.
    pub fn play(mut self, steps: usize) -> usize {
        self.quiet();
        for _ in 0..self.cluster.setting.nodes * 2 {
            self.join();
        }
        for _ in 0..steps {
            match self.cluster.chance.below(16) {
                0 => self.tick(),
                1 => self.subscribe(),
                2 => self.unsubscribe(),
                3 | 4 => self.publish(),
                5 if self.cluster.setting.faults && self.cluster.chance.one_in(8) => self.fail(),
                6 if self.cluster.chance.one_in(4) => self.join(),
                7 if self.cluster.chance.one_in(8) => self.leave(),
                _ => {
                    self.step();
                }
            }
        }
        self.quiet();
        if !self.cluster.setting.faults {
            self.check_all_came();
        }
        self.check_all_is_well();
        self.count_crossed()
    }

    fn join(&mut self) {
        let cluster = &mut self.cluster;
        let index = cluster.chance.below(cluster.setting.nodes);
        let name = cluster.name();
        let Some(node) = cluster.nodes.get_mut(&index) else {
            return;
        };
        let key = node.join(cluster.now, name, ClientFeatures::default());
        let session = Session {
            node: index,
            key,
            subscribed: BTreeMap::new(),
            asked: Vec::new(),
            ending: Vec::new(),
            events: BTreeSet::new(),
            last: BTreeMap::new(),
        };
        self.sessions.insert(name, session);
    }

    fn leave(&mut self) {
        let names: Vec<_> = self.sessions.keys().copied().collect();
        let Some(name) = self.cluster.chance.pick_any(&names) else {
            return;
        };
        let Some(session) = self.sessions.remove(&name) else {
            return;
        };
        self.cluster.leave(session.node, session.key);
        self.hear(session.node);
    }

    fn subscribe(&mut self) {
        let pattern = self.cluster.chance.below(PATTERNS.len());
        let (match_policy, topic) = PATTERNS[pattern];
        let Some(name) = self.somebody() else {
            return;
        };
        if let Some(session) = self.sessions.get_mut(&name) {
            session.asked.push(pattern);
        }
        let request = self.cluster.request();
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
        let request = self.cluster.request();
        let Some(session) = self.sessions.get_mut(&name) else {
            return;
        };
        let ids: Vec<_> = session.subscribed.keys().copied().collect();
        let Some(subscription) = self.cluster.chance.pick_any(&ids) else {
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
        let topic = self.cluster.chance.pick(&TOPICS);
        let mut due = Vec::new();
        for (other, session) in &self.sessions {
            let matching = session.subscribed.iter().filter(|(_, pattern)| {
                let (policy, pattern) = PATTERNS[**pattern];
                *other != name && is_match(policy, pattern, topic)
            });
            due.extend(matching.map(|(id, _)| (*other, *id)));
        }
        let RequestId(number) = self.cluster.request();
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
        self.cluster.handle(session.node, session.key, message);
        let node = self.cluster.nodes.get(&session.node)?;
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
        self.cluster.handle(index, session.key, message);
        self.hear(index);
    }

    fn somebody(&mut self) -> Option<Name> {
        let names: Vec<_> = self.sessions.keys().copied().collect();
        self.cluster.chance.pick_any(&names)
    }
}

impl Play for Run {
    fn cluster(&mut self) -> &mut Cluster {
        &mut self.cluster
    }

    fn hear(&mut self, index: NodeIndex) {
        let Some(node) = self.cluster.nodes.get_mut(&index) else {
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

    fn lose(&mut self, index: NodeIndex) {
        self.sessions.retain(|_, session| session.node != index);
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
