//! Several nodes on one engine, and the faults that may happen to them: the base of every run.

use std::collections::BTreeMap;

use crosstie_fabric::Versions;
use crosstie_routing::{ClientFeatures, SessionKey, Time};
use crosstie_wamp::{Message, RequestId};

use super::engine::{NodeIndex, Servers};
use super::grants::Bucket;
use super::node::{Kind, Node};
use crate::{Chance, Name};

/// The size of a cluster, and its faults.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    pub nodes: usize,
    pub servers: usize,
    pub faults: bool,
    /// Nodes speak different versions, of which all have one in common.
    pub mixed: bool,
    /// A procedure for one callee has one, whatever becomes of the nodes.
    pub strict: bool,
}

impl Setting {
    pub(super) fn kind(&self, index: NodeIndex, meta_api: bool) -> Kind {
        let versions = match (self.mixed, index % 3) {
            (false, _) => Versions::OWN,
            (true, 0) => Versions { first: 1, last: 2 },
            (true, 1) => Versions { first: 2, last: 3 },
            (true, _) => Versions { first: 1, last: 4 },
        };
        Kind {
            meta_api,
            strict: self.strict,
            versions,
        }
    }
}

/// A session's node, and the key that its node knows it by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) node: NodeIndex,
    pub(super) key: SessionKey,
}

pub(super) struct Cluster {
    pub(super) setting: Setting,
    pub(super) meta_api: bool,
    pub(super) chance: Chance,
    pub(super) servers: Servers,
    pub(super) nodes: BTreeMap<NodeIndex, Node>,
    pub(super) bucket: Bucket,
    pub(super) now: Time,
    /// A node that reaches no server for now.
    pub(super) cut_off: Option<NodeIndex>,
    name_last: Name,
    request_last: u64,
}

impl Cluster {
    pub(super) fn new(seed: u64, setting: Setting) -> Self {
        Self::with_meta_api(seed, setting, false)
    }

    /// A cluster whose realms have the meta API, or have not.
    pub(super) fn with_meta_api(seed: u64, setting: Setting, meta_api: bool) -> Self {
        let mut chance = Chance::new(seed);
        let mut servers = Servers::new(setting.servers);
        let mut nodes = BTreeMap::new();
        for index in 0..setting.nodes {
            nodes.insert(
                index,
                Node::new(
                    index as u64 + 1,
                    chance.number(),
                    setting.kind(index, meta_api),
                ),
            );
            servers.connect(index, chance.below(setting.servers));
        }
        let mut cluster = Self {
            setting,
            meta_api,
            chance,
            servers,
            nodes,
            bucket: Bucket::default(),
            now: Time(1_000_000),
            cut_off: None,
            name_last: 0,
            request_last: 0,
        };
        for index in 0..setting.nodes {
            cluster.attach(index);
        }
        cluster
    }

    pub(super) fn name(&mut self) -> Name {
        self.name_last += 1;
        self.name_last
    }

    pub(super) fn request(&mut self) -> RequestId {
        self.request_last += 1;
        RequestId(self.request_last)
    }

    /// Lets a session join one of the nodes.
    pub(super) fn join(&mut self, features: ClientFeatures) -> Option<(Name, Place)> {
        let index = self.chance.below(self.setting.nodes);
        self.join_at(index, features)
    }

    pub(super) fn join_at(
        &mut self,
        index: NodeIndex,
        features: ClientFeatures,
    ) -> Option<(Name, Place)> {
        let name = self.name();
        let key = self.nodes.get_mut(&index)?.join(self.now, name, features);
        Some((name, Place { node: index, key }))
    }

    /// A session says something.
    pub(super) fn handle(&mut self, place: Place, message: &Message<'_>) {
        let client = self.servers.clients.get_mut(&place.node);
        if let Some(node) = self.nodes.get_mut(&place.node) {
            node.handle(self.now, client, place.key, message);
        }
    }

    pub(super) fn leave(&mut self, place: Place) {
        let client = self.servers.clients.get_mut(&place.node);
        if let Some(node) = self.nodes.get_mut(&place.node) {
            node.leave(self.now, client, place.key);
        }
    }

    /// Every node has found every other one.
    pub(super) fn is_whole(&self) -> bool {
        let others = self.setting.nodes - 1;
        self.nodes
            .values()
            .all(|node| node.member.pairs() == others)
    }

    pub(super) fn attach(&mut self, index: NodeIndex) {
        let (Some(node), Some(client)) = (
            self.nodes.get_mut(&index),
            self.servers.clients.get_mut(&index),
        ) else {
            return;
        };
        let server = format!("server{}", client.server);
        node.member.attach(self.now, (&server, 1 << 20), client);
    }

    pub(super) fn detach(&mut self, index: NodeIndex) {
        self.servers.cut(index);
        if let Some(node) = self.nodes.get_mut(&index) {
            node.member.detach();
            node.settle(self.now, None);
        }
    }

    /// A node is killed, and another one begins in its place.
    pub(super) fn kill(&mut self, index: NodeIndex) {
        self.servers.cut(index);
        let (incarnation, seed) = (self.chance.number(), self.chance.number());
        let kind = self.setting.kind(index, self.meta_api);
        let node = Node::new(incarnation, seed, kind);
        self.nodes.insert(index, node);
    }

    /// Something arrives somewhere: at this node. `None`: nothing was under way.
    pub(super) fn step(&mut self) -> Option<Option<NodeIndex>> {
        let Some((index, told)) = self.servers.step(&mut self.chance)? else {
            return Some(None);
        };
        let node = self.nodes.get_mut(&index);
        let client = self.servers.clients.get_mut(&index);
        let (Some(node), Some(client)) = (node, client) else {
            return Some(None);
        };
        node.told(self.now, client, &told);
        Some(Some(index))
    }
}
