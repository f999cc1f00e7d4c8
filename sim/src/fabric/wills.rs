//! One run of testaments: sessions of several nodes leave some behind, however they end.
//!
//! No subscriber receives a testament twice, whatever happens. Testaments of a session that leaves reach all
//! subscribers. So do those of a node that is killed without other faults.

use std::collections::{BTreeMap, BTreeSet};

use crosstie_routing::ClientFeatures;
use crosstie_wamp::{
    CallOptions, Message, MessageType, Payload, PublicationId, RequestId, Serializer,
    SubscribeOptions,
};

use super::cluster::{Cluster, Place, Setting};
use super::engine::NodeIndex;
use super::node::Heard;
use super::play::{Play, Present};
use crate::Name;

pub struct Wills {
    cluster: Cluster,
    sessions: BTreeMap<Name, Session>,
    /// The testaments that each subscriber received, one on each node.
    listeners: BTreeMap<Name, BTreeSet<PublicationId>>,
    /// Testaments with an id, and their sessions.
    added: BTreeMap<PublicationId, Name>,
    came: usize,
}

pub(super) struct Session {
    place: Place,
    adding: BTreeSet<RequestId>,
    added: Vec<PublicationId>,
}

const TOPIC: &str = "a.gone";

/// Ticks of silence after which a killed node counts as dead, and a few more.
const DEAD_TICKS: usize = 150;

impl Wills {
    pub fn new(seed: u64, setting: Setting) -> Self {
        Self {
            cluster: Cluster::with_meta_api(seed, setting, true),
            sessions: BTreeMap::new(),
            listeners: BTreeMap::new(),
            added: BTreeMap::new(),
            came: 0,
        }
    }

    /// Plays that many steps; returns how many testaments were received.
    pub fn play(mut self, steps: usize) -> usize {
        self.quiet();
        for node in 0..self.cluster.setting.nodes {
            self.listen(node);
        }
        self.quiet();
        for step in 0..steps {
            match self.cluster.chance.below(12) {
                0 => self.tick(),
                1 | 2 => self.join(),
                3 => self.leave_one(),
                4..=6 => self.add(),
                7 if self.cluster.chance.one_in(4) => self.flush(),
                8 if self.cluster.setting.faults && self.cluster.chance.one_in(4) => {
                    // One fault at a time: the notice that a testament is published is lost with a holder's connection.
                    // If its node dies before both have met again, the holder publishes it, too.
                    if !self.cluster.is_whole() {
                        self.quiet();
                    }
                    self.fail();
                }
                _ => {
                    self.step();
                }
            }
            if step % 60 == 59 {
                self.rest();
                match self.cluster.chance.one_in(2) {
                    true => self.kill_one(),
                    false => self.cut_one_off(),
                }
            }
        }
        self.rest();
        for node in self.cluster.nodes.values() {
            let mut own = self.sessions.values();
            let any = own.any(|session| !session.added.is_empty());
            let held = node.realm.counts().testaments_entrusted;
            assert!(held == 0 || any, "what nobody has left is held");
        }
        self.came
    }

    /// Lets everything arrive, and silent nodes be missed.
    fn rest(&mut self) {
        self.quiet();
        if !self.cluster.setting.faults {
            return;
        }
        for _ in 0..DEAD_TICKS {
            self.tick();
            while self.step() {}
        }
    }

    /// Kills a node while all is well: its sessions' testaments are published, once.
    fn kill_one(&mut self) {
        if self.cluster.setting.nodes < 2 || !self.cluster.setting.faults {
            return;
        }
        let index = self.cluster.chance.below(self.cluster.setting.nodes);
        let mine = self
            .sessions
            .values()
            .filter(|session| session.place.node == index);
        let left: Vec<_> = mine.flat_map(|session| session.added.clone()).collect();
        self.cluster.kill(index);
        self.lose(index);
        self.rest();
        for sent in self.listeners.values() {
            assert!(
                left.iter().all(|id| sent.contains(id)),
                "one is not published"
            );
        }
        self.listen(index);
        self.quiet();
    }

    /// Cuts a node off until it counts as dead, and lets it return: its sessions live on, and their testaments are
    /// published for them, once. Some leave meanwhile, and some as soon as it is back.
    fn cut_one_off(&mut self) {
        if !self.cluster.setting.faults {
            return;
        }
        let index = self.cluster.chance.below(self.cluster.setting.nodes);
        self.cluster.cut_off = Some(index);
        self.detach(index);
        let leaves = self.cluster.chance.one_in(2);
        self.rest();
        if leaves {
            self.leave_from(index);
        }
        self.cluster.cut_off = None;
        for _ in 0..self.cluster.chance.below(8) {
            self.tick();
            for _ in 0..self.cluster.chance.below(40) {
                self.step();
            }
        }
        self.leave_from(index);
        self.quiet();
        while self.leave_from(index) {}
        self.quiet();
    }

    /// A session of a node leaves, but for the one that listens; whether there was one.
    fn leave_from(&mut self, index: NodeIndex) -> bool {
        let mut sessions = self.sessions.iter();
        let of_node = |(name, session): &(&Name, &Session)| {
            session.place.node == index && !self.listeners.contains_key(name)
        };
        let Some(name) = sessions.find(of_node).map(|(name, _)| *name) else {
            return false;
        };
        self.leave(name);
        true
    }

    fn enter(&mut self, index: NodeIndex) -> Option<Name> {
        let (name, place) = self.cluster.join_at(index, ClientFeatures::default())?;
        let session = Session {
            place,
            adding: BTreeSet::new(),
            added: Vec::new(),
        };
        self.sessions.insert(name, session);
        Some(name)
    }

    fn listen(&mut self, index: NodeIndex) {
        let Some(name) = self.enter(index) else {
            return;
        };
        self.listeners.insert(name, BTreeSet::new());
        let request = self.cluster.request();
        self.say(
            name,
            &Message::Subscribe {
                request,
                options: SubscribeOptions::default(),
                topic: TOPIC.into(),
            },
        );
    }

    fn join(&mut self) {
        let index = self.cluster.chance.below(self.cluster.setting.nodes);
        if self.sessions.len() < 16 {
            self.enter(index);
        }
    }

    fn leave_one(&mut self) {
        let Some(name) = self.somebody() else {
            return;
        };
        let added = self
            .sessions
            .get(&name)
            .map(|session| session.added.clone());
        Play::leave(self, name);
        if !self.cluster.setting.faults {
            self.quiet();
            for sent in self.listeners.values() {
                let all = added.iter().flatten().all(|id| sent.contains(id));
                assert!(all, "one is not published");
            }
        }
    }

    fn call(&mut self, name: Name, procedure: &str, kwargs: &str) {
        let request = self.cluster.request();
        if procedure.ends_with("add_testament")
            && let Some(session) = self.sessions.get_mut(&name)
        {
            session.adding.insert(request);
        }
        self.say(
            name,
            &Message::Call {
                request,
                options: CallOptions::default(),
                procedure: procedure.into(),
                payload: Payload::new(Serializer::Json, b"[]", kwargs.as_bytes()),
            },
        );
    }

    fn add(&mut self) {
        let scope = self.cluster.chance.pick(&["detached", "destroyed"]);
        let kwargs = format!(r#"{{"topic":"{TOPIC}","scope":"{scope}"}}"#);
        if let Some(name) = self.somebody() {
            self.call(name, "wamp.session.add_testament", &kwargs);
        }
    }

    fn flush(&mut self) {
        let Some(name) = self.somebody() else {
            return;
        };
        for scope in ["detached", "destroyed"] {
            let kwargs = format!(r#"{{"scope":"{scope}"}}"#);
            self.call(name, "wamp.session.flush_testaments", &kwargs);
        }
        if let Some(session) = self.sessions.get_mut(&name) {
            session.added.clear();
        }
    }
}

impl Present for Session {
    fn place(&self) -> Place {
        self.place
    }
}

impl Play for Wills {
    type Session = Session;

    fn cluster(&mut self) -> &mut Cluster {
        &mut self.cluster
    }

    fn sessions(&mut self) -> &mut BTreeMap<Name, Session> {
        &mut self.sessions
    }

    fn only_listens(&self, name: Name) -> bool {
        self.listeners.contains_key(&name)
    }

    fn judge(&mut self, name: Name, heard: Heard) {
        match heard {
            Heard::Subscribed(_) => {}
            Heard::Event(_, publication) => {
                let sent = self.listeners.get_mut(&name).expect("it listens");
                assert!(sent.insert(publication), "no testament comes twice");
                assert!(self.added.contains_key(&publication), "it was added");
                self.came += 1;
            }
            Heard::Result(request, ..) => {
                let Some(session) = self.sessions.get_mut(&name) else {
                    return;
                };
                if session.adding.remove(&request) {
                    let node = self.cluster.nodes.get(&session.place.node);
                    let id = node.and_then(|node| node.answers.get(&request)?.as_u64());
                    let id = PublicationId(id.expect("it is told the id"));
                    session.added.push(id);
                    self.added.insert(id, name);
                }
            }
            Heard::Error(MessageType::Call, ..) => {}
            other => panic!("nobody asked for {other:?}"),
        }
    }

    fn lose(&mut self, index: NodeIndex) {
        self.sessions
            .retain(|_, session| session.place.node != index);
        self.listeners
            .retain(|name, _| self.sessions.contains_key(name));
    }
}
