//! One run: actions of sessions on several nodes, and checks of their results.

mod checks;

use std::collections::{BTreeMap, BTreeSet};

use crosstie_routing::ClientFeatures;
use crosstie_wamp::{
    MatchPolicy, Message, Payload, PublicationId, PublishOptions, RequestId, Serializer,
    SubscribeOptions, SubscriptionId,
};

use super::cluster::{Cluster, Place, Setting};
use super::node::Heard;
use super::play::{Play, Present};
use crate::Name;

pub struct Run {
    cluster: Cluster,
    sessions: BTreeMap<Name, Session>,
    publications: BTreeMap<PublicationId, Publication>,
}

/// A session as itself sees it.
pub(super) struct Session {
    place: Place,
    /// Its confirmed subscriptions.
    subscribed: BTreeMap<SubscriptionId, usize>,
    /// Its open SUBSCRIBEs, in order.
    asked: Vec<usize>,
    /// Its open UNSUBSCRIBEs, in order.
    ending: Vec<SubscriptionId>,
    /// The events that it received.
    events: BTreeSet<(SubscriptionId, PublicationId)>,
    /// Of each publisher and subscription, the last one.
    last: BTreeMap<(Name, SubscriptionId), u64>,
}

struct Publication {
    by: Name,
    number: u64,
    topic: &'static str,
    /// The subscribers that had received SUBSCRIBED when it was published.
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

    /// Plays that many steps, then lets everything arrive; returns how many events came from other nodes.
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
                7 if self.cluster.chance.one_in(8) => self.leave_any(),
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
        if let Some((name, place)) = self.cluster.join(ClientFeatures::default()) {
            self.sessions.insert(name, Session::at(place));
        }
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
        let options = SubscribeOptions::matching(match_policy);
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
            options: PublishOptions::acknowledged(),
            topic: topic.into(),
            payload: Payload::new(Serializer::Json, args.as_bytes(), b""),
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
        let place = self.sessions.get(&name).map(Present::place);
        place.into_iter().for_each(|place| self.hear(place.node));
    }

    /// Says it, and finds the publication's id before its events are looked at.
    fn say_publish(&mut self, name: Name, message: &Message<'_>) -> Option<PublicationId> {
        let place = self.sessions.get(&name)?.place;
        self.cluster.handle(place, message);
        let node = self.cluster.nodes.get(&place.node)?;
        node.heard.iter().find_map(|(_, heard)| match heard {
            Heard::Published(id) => Some(*id),
            _ => None,
        })
    }
}

impl Session {
    fn at(place: Place) -> Self {
        Self {
            place,
            subscribed: BTreeMap::new(),
            asked: Vec::new(),
            ending: Vec::new(),
            events: BTreeSet::new(),
            last: BTreeMap::new(),
        }
    }
}

impl Present for Session {
    fn place(&self) -> Place {
        self.place
    }
}

impl Play for Run {
    type Session = Session;

    fn cluster(&mut self) -> &mut Cluster {
        &mut self.cluster
    }

    fn sessions(&mut self) -> &mut BTreeMap<Name, Session> {
        &mut self.sessions
    }

    fn judge(&mut self, name: Name, heard: Heard) {
        let Some(session) = self.sessions.get_mut(&name) else {
            return;
        };
        match heard {
            Heard::Published(_) => {}
            Heard::Subscribed(id) => {
                // Answers to different patterns may come in another order than they were asked for.
                let known = session.subscribed.get(&id).copied();
                let node = &self.cluster.nodes[&session.place.node].realm;
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

/// The pattern of a subscription, according to a realm.
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
