//! One run of retained events: sessions of several nodes publish some, and all nodes must end up with the same.
//!
//! The nodes retain what one realm would retain, given the publications in the order of their numbers. Without faults,
//! and with publications that do not overlap, that is the last one of each topic.

use std::collections::BTreeMap;

use crosstie_routing::ClientFeatures;
use crosstie_wamp::{
    Message, Payload, PublicationId, PublishOptions, Receivers, RequestId, Serializer,
    SubscribeOptions, SubscriptionId,
};

use super::cluster::{Cluster, Place, Setting};
use super::engine::NodeIndex;
use super::node::Heard;
use super::play::{Play, Present};
use crate::Name;

const TOPICS: [&str; 4] = ["k.a", "k.b", "k.c", "k.d"];

pub struct Keeps {
    cluster: Cluster,
    sessions: BTreeMap<Name, Session>,
    /// The last publication of each topic, if all was quiet before it.
    last: BTreeMap<&'static str, Option<PublicationId>>,
    published: Option<PublicationId>,
    got: usize,
}

pub(super) struct Session {
    place: Place,
    subscribed: Vec<SubscriptionId>,
    retained: Vec<PublicationId>,
}

impl Present for Session {
    fn place(&self) -> Place {
        self.place
    }
}

impl Keeps {
    pub fn new(seed: u64, setting: Setting) -> Self {
        Self {
            cluster: Cluster::with_meta_api(seed, setting, false),
            sessions: BTreeMap::new(),
            last: BTreeMap::new(),
            published: None,
            got: 0,
        }
    }

    /// Plays that many rounds; returns how many retained events were received.
    pub fn play(mut self, rounds: usize) -> usize {
        self.quiet();
        for node in 0..self.cluster.setting.nodes {
            self.enter(node);
        }
        for round in 0..rounds {
            // Without a rest between them, of two nodes either may have the later one.
            for _ in 0..self.cluster.chance.below(12) {
                self.publish();
                self.step();
            }
            if self.cluster.setting.faults && round % 2 == 0 {
                self.fail();
                for node in 0..self.cluster.setting.nodes {
                    self.enter(node);
                }
            }
            self.meet_anew();
            self.last.clear();
            for _ in 0..4 {
                self.publish();
                self.settle();
            }
            self.check();
        }
        self.got
    }

    /// All nodes meet again, whatever was lost between them.
    fn meet_anew(&mut self) {
        if self.cluster.setting.faults {
            for index in 0..self.cluster.setting.nodes {
                self.detach(index);
            }
            self.quiet();
        }
        self.quiet();
    }

    /// Checks that every node retains the same events, the last published ones.
    fn check(&mut self) {
        let mut all = Vec::new();
        for node in 0..self.cluster.setting.nodes {
            let Some(name) = self.enter(node) else {
                continue;
            };
            let mut got = BTreeMap::new();
            for topic in TOPICS {
                let request = self.cluster.request();
                let options = SubscribeOptions {
                    get_retained: true,
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
                self.settle();
                let session = self.sessions.get_mut(&name).expect("it is there");
                let retained = std::mem::take(&mut session.retained);
                assert!(retained.len() <= 1, "one event of a topic");
                got.extend(retained.first().map(|id| (topic, *id)));
            }
            for (topic, last) in &self.last {
                assert_eq!(got.get(topic), last.as_ref(), "{topic} of node {node}");
            }
            self.got += got.len();
            all.push(got);
            self.leave(name);
        }
        all.dedup();
        assert_eq!(all.len(), 1, "every node keeps the same");
        let digests = self.cluster.nodes.values();
        let mut counts: Vec<_> = digests
            .map(|node| node.realm.counts().retained_events)
            .collect();
        counts.dedup();
        assert_eq!(counts.len(), 1, "every node keeps as many");
    }

    fn enter(&mut self, index: NodeIndex) -> Option<Name> {
        let (name, place) = self.cluster.join_at(index, ClientFeatures::default())?;
        let session = Session {
            place,
            subscribed: Vec::new(),
            retained: Vec::new(),
        };
        self.sessions.insert(name, session);
        Some(name)
    }

    /// Has a session publish a retained event, for all or for some.
    fn publish(&mut self) {
        let Some(name) = self.somebody() else {
            return;
        };
        let topic = self.cluster.chance.pick(&TOPICS);
        let RequestId(number) = self.cluster.request();
        let args = format!("[{number}]");
        let lists = self.cluster.chance.below(4);
        let receivers = (lists < 2).then(|| {
            Box::new(Receivers {
                // The excluded ones do not exist.
                exclude_authid: Some(vec![format!("nobody{lists}")]),
                ..Receivers::default()
            })
        });
        // It removes the retained event before, and is not retained itself.
        let ends = receivers.is_none() && self.cluster.chance.one_in(3);
        self.published = None;
        self.say(
            name,
            &Message::Publish {
                request: RequestId(number),
                options: PublishOptions {
                    acknowledge: true,
                    retain: true,
                    retain_ms: ends.then_some(0),
                    receivers,
                    ..PublishOptions::default()
                },
                topic: topic.into(),
                payload: Payload::new(Serializer::Json, args.as_bytes(), b""),
            },
        );
        if let Some(id) = self.published {
            self.last.insert(topic, (!ends).then_some(id));
        }
    }
}

impl Play for Keeps {
    type Session = Session;

    fn cluster(&mut self) -> &mut Cluster {
        &mut self.cluster
    }

    fn sessions(&mut self) -> &mut BTreeMap<Name, Session> {
        &mut self.sessions
    }

    fn judge(&mut self, name: Name, heard: Heard) {
        match heard {
            Heard::Published(id) => self.published = Some(id),
            Heard::Subscribed(id) => {
                let session = self.sessions.get_mut(&name).expect("it is there");
                session.subscribed.push(id);
            }
            Heard::Event(id, publication) => {
                let session = self.sessions.get_mut(&name).expect("it is there");
                assert!(session.subscribed.contains(&id));
                session.retained.push(publication);
            }
            other => panic!("nobody asked for {other:?}"),
        }
    }
}
