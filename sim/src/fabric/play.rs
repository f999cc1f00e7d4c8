//! A run on a cluster: sessions send messages, and each message to a node is handled at once.

use std::collections::BTreeMap;

use crosstie_fabric::Ticked;
use crosstie_wamp::Message;

use super::cluster::{Cluster, Place, Setting};
use super::engine::NodeIndex;
use super::node::Heard;
use crate::Name;

/// Duration of a tick. Without faults nothing takes long enough for a node to be given up.
const TICK_MS: u64 = 100;
const TICK_WITHOUT_FAULTS_MS: u64 = 10;

/// Ticks in which silent servers and nodes are given up, and others found.
const QUIET_TICKS: usize = 80;

/// Ticks in which a message arrives everywhere while nothing fails.
const SETTLED_TICKS: usize = 5;

/// A node that did not answer while things failed is not asked again for a minute.
const MUTE_TICKS: usize = 650;

/// Ticks in which all nodes that have found each other exchange their state.
const FOUND_TICKS: usize = 20;

/// A session as itself sees it.
pub(super) trait Present {
    fn place(&self) -> Place;
}

pub(super) trait Play {
    type Session: Present;

    fn cluster(&mut self) -> &mut Cluster;

    fn sessions(&mut self) -> &mut BTreeMap<Name, Self::Session>;

    /// Checks a message to a session, which may have left.
    fn judge(&mut self, name: Name, heard: Heard);

    /// A session was told of sessions, registrations or subscriptions, by an event of that topic.
    fn learn(&mut self, _name: Name, _topic: &str, _ids: &[u64]) {}

    /// Whether a session only listens.
    fn only_listens(&self, _name: Name) -> bool {
        false
    }

    /// One of those that say something.
    fn somebody(&mut self) -> Option<Name> {
        let names: Vec<_> = self.sessions().keys().copied().collect();
        let names: Vec<_> = names
            .into_iter()
            .filter(|name| !self.only_listens(*name))
            .collect();
        self.cluster().chance.pick_any(&names)
    }

    fn say(&mut self, name: Name, message: &Message<'_>) {
        let Some(place) = self.sessions().get(&name).map(Present::place) else {
            return;
        };
        self.cluster().handle(place, message);
        self.hear(place.node);
    }

    fn leave_any(&mut self) {
        if let Some(name) = self.somebody() {
            self.leave(name);
        }
    }

    fn leave(&mut self, name: Name) {
        if let Some(session) = self.sessions().remove(&name) {
            let place = session.place();
            self.cluster().leave(place);
            self.hear(place.node);
        }
    }

    /// Checks the messages of a node to its sessions.
    fn hear(&mut self, index: NodeIndex) {
        let Some(node) = self.cluster().nodes.get_mut(&index) else {
            return;
        };
        let (told, heard) = (
            std::mem::take(&mut node.told),
            std::mem::take(&mut node.heard),
        );
        for (name, topic, ids) in told {
            self.learn(name, &topic, &ids);
        }
        for (name, heard) in heard {
            self.judge(name, heard);
        }
    }

    /// Removes the sessions of a node that is lost.
    fn lose(&mut self, index: NodeIndex) {
        self.sessions()
            .retain(|_, session| session.place().node != index);
    }

    /// Whether something was under way.
    fn step(&mut self) -> bool {
        let stepped = self.cluster().step();
        if let Some(Some(index)) = stepped {
            self.hear(index);
        }
        stepped.is_some()
    }

    fn tick(&mut self) {
        let cluster = self.cluster();
        let Setting {
            nodes,
            servers,
            faults,
            ..
        } = cluster.setting;
        let tick_ms = match faults {
            true => TICK_MS,
            false => TICK_WITHOUT_FAULTS_MS,
        };
        cluster.now = cluster.now.after_ms(tick_ms);
        for index in 0..nodes {
            let cluster = self.cluster();
            let client = cluster.servers.clients.get_mut(&index);
            let is_cut = client.is_none();
            let Some(node) = cluster.nodes.get_mut(&index) else {
                continue;
            };
            let ticked = node.tick(cluster.now, client);
            cluster.grant(index);
            self.hear(index);
            if ticked == Ticked::Silent {
                self.detach(index);
                continue;
            }
            let cluster = self.cluster();
            if is_cut && cluster.cut_off != Some(index) && cluster.chance.one_in(3) {
                let server = cluster.chance.below(servers);
                cluster.servers.connect(index, server);
                cluster.attach(index);
            }
        }
    }

    /// Lets everything arrive, and all nodes find each other.
    fn quiet(&mut self) {
        self.cluster().bucket.reach_all();
        // Without faults no node has to be given up first.
        let least = match self.cluster().setting.faults {
            true => QUIET_TICKS,
            false => 0,
        };
        let mut found = 0;
        for tick in 0..MUTE_TICKS {
            while self.step() {}
            self.tick();
            found = match self.cluster().is_whole() {
                true => found + 1,
                false => 0,
            };
            if tick >= least && found >= FOUND_TICKS {
                break;
            }
        }
        while self.step() {}
    }

    /// Lets everything arrive, if nothing has failed since all was quiet.
    fn settle(&mut self) {
        for _ in 0..SETTLED_TICKS {
            while self.step() {}
            self.tick();
        }
        while self.step() {}
    }

    fn detach(&mut self, index: NodeIndex) {
        self.cluster().detach(index);
        self.hear(index);
    }

    fn fail(&mut self) {
        let cluster = self.cluster();
        let servers = cluster.setting.servers;
        let index = cluster.chance.below(cluster.setting.nodes);
        match cluster.chance.below(4) {
            0 => self.detach(index),
            1 if servers > 1 => {
                let from = cluster.chance.below(servers);
                cluster.servers.cut_route(from, (from + 1) % servers);
            }
            2 => cluster.bucket.cut(index),
            // It is killed, and another one begins in its place.
            _ => {
                cluster.kill(index);
                self.lose(index);
            }
        }
    }
}
