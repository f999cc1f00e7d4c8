//! One run of questions: sessions of several nodes come and go, subscribe and register, and query the meta API.
//!
//! A question during changes gets exactly one answer, with any content. When all is quiet, each node answers as one
//! realm with the sessions of all nodes would.

mod answers;
mod view;

use std::collections::{BTreeMap, BTreeSet};

use crosstie_routing::{ClientFeature, ClientFeatures};
use crosstie_wamp::{
    CallOptions, InvocationPolicy, MatchPolicy, Message, MessageType, Payload, PublicationId,
    RegisterOptions, RegistrationId, RequestId, Serializer, SubscribeOptions, SubscriptionId,
};

use super::cluster::{Cluster, Place, Setting};
use super::engine::NodeIndex;
use super::node::Heard;
use super::play::{Play, Present};
use crate::Name;
use view::View;

const TOPICS: [(MatchPolicy, &str); 4] = [
    (MatchPolicy::Exact, "a.b"),
    (MatchPolicy::Exact, "a.c"),
    (MatchPolicy::Prefix, "a."),
    (MatchPolicy::Wildcard, "a."),
];

const PROCEDURES: [&str; 3] = ["p.a", "p.b", "p.c"];

pub struct Asks {
    cluster: Cluster,
    sessions: BTreeMap<Name, Session>,
    /// The meta events that a session of each node received.
    watchers: BTreeMap<Name, BTreeSet<PublicationId>>,
    views: BTreeMap<Name, View>,
    answered: usize,
}

/// A session as itself sees it.
pub(super) struct Session {
    place: Place,
    id: u64,
    subscribed: BTreeMap<usize, SubscriptionId>,
    subscribing: BTreeMap<RequestId, usize>,
    registered: BTreeMap<usize, RegistrationId>,
    registering: BTreeMap<RequestId, usize>,
    asked: BTreeSet<RequestId>,
}

impl Asks {
    pub fn new(seed: u64, setting: Setting) -> Self {
        Self {
            cluster: Cluster::with_meta_api(seed, setting, true),
            sessions: BTreeMap::new(),
            watchers: BTreeMap::new(),
            views: BTreeMap::new(),
            answered: 0,
        }
    }

    /// Plays that many steps, and now and then asks every question; returns how many were answered correctly.
    pub fn play(mut self, steps: usize) -> usize {
        self.quiet();
        for index in 0..self.cluster.setting.nodes {
            self.watch(index);
        }
        self.quiet();
        for step in 0..steps {
            match self.cluster.chance.below(16) {
                0 => self.tick(),
                1 | 2 => self.join(),
                3 => self.leave_any(),
                4..=6 => self.subscribe(),
                7 | 8 => self.register(),
                9 | 10 => self.ask_something(),
                11 if self.cluster.setting.faults && self.cluster.chance.one_in(8) => self.fail(),
                _ => {
                    self.step();
                }
            }
            if step % 75 == 74 {
                self.quiet();
                self.check_answered();
                self.check_answers();
            }
        }
        self.quiet();
        self.check_answered();
        self.check_views();
        if !self.cluster.setting.faults {
            self.check_told();
        }
        for node in self.cluster.nodes.values() {
            assert_eq!(node.realm.counts().questions, 0, "a question stays");
        }
        self.answered
    }

    fn enter(&mut self, node: NodeIndex) -> Option<Name> {
        let cluster = &mut self.cluster;
        let name = cluster.name();
        // Sessions support revocation: GOODBYE means that they were killed.
        let features: ClientFeatures = ClientFeature::ALL.into_iter().collect();
        let client = cluster.servers.clients.get_mut(&node);
        let (key, id) = cluster
            .nodes
            .get_mut(&node)?
            .enter(cluster.now, client, name, features);
        let session = Session {
            place: Place { node, key },
            id,
            subscribed: BTreeMap::new(),
            subscribing: BTreeMap::new(),
            registered: BTreeMap::new(),
            registering: BTreeMap::new(),
            asked: BTreeSet::new(),
        };
        self.sessions.insert(name, session);
        Some(name)
    }

    fn watch(&mut self, node: NodeIndex) {
        let Some(name) = self.enter(node) else {
            return;
        };
        self.watchers.insert(name, BTreeSet::new());
        let request = self.cluster.request();
        self.say(name, &subscribe(request, MatchPolicy::Prefix, "wamp."));
        // Its meta events until all nodes know its subscriptions differ from those of others.
        self.quiet();
        self.watchers.values_mut().for_each(BTreeSet::clear);
        self.begin_view(name);
    }

    fn join(&mut self) {
        let node = self.cluster.chance.below(self.cluster.setting.nodes);
        if self.sessions.len() < 24 {
            self.enter(node);
        }
    }

    fn subscribe(&mut self) {
        let place = self.cluster.chance.below(TOPICS.len());
        let Some(name) = self.somebody() else {
            return;
        };
        let request = self.cluster.request();
        if let Some(session) = self.sessions.get_mut(&name) {
            session.subscribing.insert(request, place);
        }
        let (policy, topic) = TOPICS[place];
        self.say(name, &subscribe(request, policy, topic));
    }

    fn register(&mut self) {
        let place = self.cluster.chance.below(PROCEDURES.len());
        let Some(name) = self.somebody() else {
            return;
        };
        let request = self.cluster.request();
        if let Some(session) = self.sessions.get_mut(&name) {
            session.registering.insert(request, place);
        }
        let options = RegisterOptions {
            invoke: InvocationPolicy::RoundRobin,
            ..RegisterOptions::default()
        };
        self.say(
            name,
            &Message::Register {
                request,
                options,
                procedure: PROCEDURES[place].into(),
            },
        );
    }

    fn ask(&mut self, name: Name, procedure: &str, args: &str, kwargs: &str) -> RequestId {
        let request = self.cluster.request();
        if let Some(session) = self.sessions.get_mut(&name) {
            session.asked.insert(request);
        }
        self.say(
            name,
            &Message::Call {
                request,
                options: CallOptions::default(),
                procedure: procedure.into(),
                payload: Payload::new(Serializer::Json, args.as_bytes(), kwargs.as_bytes()),
            },
        );
        request
    }
}

impl Present for Session {
    fn place(&self) -> Place {
        self.place
    }
}

impl Play for Asks {
    type Session = Session;

    fn cluster(&mut self) -> &mut Cluster {
        &mut self.cluster
    }

    fn sessions(&mut self) -> &mut BTreeMap<Name, Session> {
        &mut self.sessions
    }

    fn only_listens(&self, name: Name) -> bool {
        self.watchers.contains_key(&name)
    }

    fn judge(&mut self, name: Name, heard: Heard) {
        let Some(session) = self.sessions.get_mut(&name) else {
            return;
        };
        match heard {
            Heard::Subscribed(id) => {
                // In the order of the questions, except those that are distinguished by their ids.
                let node = &self.cluster.nodes[&session.place.node].realm;
                let pattern = node.subscription(id).expect("it is subscribed to");
                let place = TOPICS.iter().position(|known| *known == pattern);
                place.into_iter().for_each(|place| {
                    session.subscribed.insert(place, id);
                });
            }
            Heard::Registered(request, id) => {
                let place = session.registering.remove(&request);
                session
                    .registered
                    .insert(place.expect("it asked for that"), id);
            }
            Heard::Revoked(id) => session.registered.retain(|_, known| *known != id),
            Heard::Event(_, publication) => {
                if let Some(told) = self.watchers.get_mut(&name) {
                    assert!(told.insert(publication), "no meta event comes twice");
                }
            }
            Heard::Result(request, ..) => {
                assert!(session.asked.remove(&request), "one answer for a question");
            }
            Heard::Error(MessageType::Call, request, error) => {
                assert!(session.asked.remove(&request), "one answer for a question");
                let may_be = match error.as_str() {
                    "wamp.error.no_such_session"
                    | "wamp.error.no_such_subscription"
                    | "wamp.error.no_such_registration" => true,
                    // It has asked for more lists than one may.
                    "crosstie.error.realm_calls_max" => true,
                    "wamp.error.network_failure" => self.cluster.setting.faults,
                    _ => false,
                };
                assert!(may_be, "a question is answered with {error}");
            }
            Heard::Error(..) => {}
            Heard::Goodbye => {
                self.sessions.remove(&name);
            }
            other => panic!("nobody asked for {other:?}"),
        }
    }

    fn learn(&mut self, name: Name, topic: &str, ids: &[u64]) {
        if let Some(view) = self.views.get_mut(&name) {
            view.take(topic, ids, !self.cluster.setting.faults);
        }
    }

    fn lose(&mut self, index: NodeIndex) {
        self.sessions
            .retain(|_, session| session.place.node != index);
        self.watchers
            .retain(|name, _| self.sessions.contains_key(name));
        self.views
            .retain(|name, _| self.sessions.contains_key(name));
    }
}

fn subscribe(request: RequestId, match_policy: MatchPolicy, topic: &str) -> Message<'_> {
    Message::Subscribe {
        request,
        options: SubscribeOptions::matching(match_policy),
        topic: topic.into(),
    }
}
