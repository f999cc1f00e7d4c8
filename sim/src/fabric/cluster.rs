//! Several nodes on one engine, and what may go wrong with them: what every run plays on.

use std::collections::BTreeMap;

use crosstie_fabric::{Ticked, Versions};
use crosstie_routing::{SessionKey, Time};
use crosstie_wamp::{Message, RequestId};

use super::engine::{NodeIndex, Servers};
use super::granting::Bucket;
use super::node::{Kind, Node};
use crate::{Chance, Name};

/// What there is, and what may go wrong.
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
    fn kind(&self, index: NodeIndex, meta_api: bool) -> Kind {
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

pub(super) struct Cluster {
    pub(super) setting: Setting,
    meta_api: bool,
    pub(super) chance: Chance,
    pub(super) servers: Servers,
    pub(super) nodes: BTreeMap<NodeIndex, Node>,
    pub(super) bucket: Bucket,
    pub(super) now: Time,
    name_last: Name,
    request_last: u64,
}

/// Of a tick. Without faults nothing takes so long that a node is given up.
const TICK_MS: u64 = 100;
const TICK_WITHOUT_FAULTS_MS: u64 = 10;

impl Cluster {
    pub(super) fn new(seed: u64, setting: Setting) -> Self {
        Self::with_meta_api(seed, setting, false)
    }

    /// One whose realms tell of themselves, or do not.
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

    /// A session of a node says something.
    pub(super) fn handle(&mut self, index: NodeIndex, key: SessionKey, message: &Message<'_>) {
        let client = self.servers.clients.get_mut(&index);
        if let Some(node) = self.nodes.get_mut(&index) {
            node.handle(self.now, client, key, message);
        }
    }

    pub(super) fn leave(&mut self, index: NodeIndex, key: SessionKey) {
        let client = self.servers.clients.get_mut(&index);
        if let Some(node) = self.nodes.get_mut(&index) {
            node.leave(self.now, client, key);
        }
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

    fn detach(&mut self, index: NodeIndex) {
        self.servers.cut(index);
        if let Some(node) = self.nodes.get_mut(&index) {
            node.member.detach();
            node.settle(self.now, None);
        }
    }

    /// Something arrives somewhere: at this node. `None`: nothing was under way.
    fn step(&mut self) -> Option<Option<NodeIndex>> {
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

/// A run on a cluster: whatever happens to a node, its sessions are heard at once.
pub(super) trait Play {
    fn cluster(&mut self) -> &mut Cluster;

    /// Judges what a node has told its sessions.
    fn hear(&mut self, index: NodeIndex);

    /// The sessions of a node are gone with it.
    fn lose(&mut self, index: NodeIndex);

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
            if is_cut && cluster.chance.one_in(3) {
                let server = cluster.chance.below(servers);
                cluster.servers.connect(index, server);
                cluster.attach(index);
            }
        }
    }

    /// Lets everything arrive, and everybody find each other.
    fn quiet(&mut self) {
        self.cluster().bucket.reach_all();
        for _ in 0..80 {
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
                cluster.servers.cut(index);
                let (incarnation, seed) = (cluster.chance.number(), cluster.chance.number());
                let kind = cluster.setting.kind(index, cluster.meta_api);
                let node = Node::new(incarnation, seed, kind);
                cluster.nodes.insert(index, node);
                self.lose(index);
            }
        }
    }
}
