//! The nodes that sessions join: ours and peers.

use std::path::Path;

use serde_json::{Value, json};

use super::case::Beside;
use super::credentials::{Method, ROLE};
use crate::error::BenchError;
use crate::frame::{OWN, Site, Testbed};
use crate::machine::bind_processes;
use crate::nodes;
use crate::peer::Peer;
use crate::subject::node_configuration;

pub(super) use crate::nodes::Node;

#[derive(Default)]
pub(super) struct Nodes {
    nodes: Vec<Node>,
    started: nodes::Nodes,
}

impl Nodes {
    pub(super) fn start(site: &Site, peers: &[Peer]) -> Result<Self, BenchError> {
        let mut started = nodes::Nodes::default();
        let mut nodes =
            vec![started.start_own(site, &|_, socket| Ok(configuration(socket, true)))?];
        for peer in peers {
            nodes.extend(
                started.start_peer(site, *peer, &|_, socket| Ok(configuration(socket, false)))?,
            );
        }
        Ok(Self { nodes, started })
    }

    /// Those that support it, moved there.
    pub(super) fn on(&self, cores: &[usize], beside: Beside) -> Result<Vec<Node>, BenchError> {
        let nodes = self.nodes.iter();
        // A peer stores tickets only in plain form.
        let able = nodes.filter(|node| node.name == OWN || beside != Beside::Hashed);
        let able: Vec<_> = able.cloned().collect();
        for node in &able {
            bind_processes(&node.processes, cores)?;
        }
        Ok(able)
    }

    pub(super) fn testbed(&self) -> Testbed {
        self.started.testbed("nodes")
    }
}

fn configuration(socket: &Path, is_own: bool) -> Value {
    let transports = json!([{
        "type": "rawsocket",
        "endpoint": { "type": "unix", "path": socket },
        "serializers": ["msgpack"],
        "auth": Method::configuration(is_own)
    }]);
    node_configuration(ROLE, transports)
}
