//! The nodes that sessions join: ours and peers.

use serde_json::json;

use super::credentials::{Method, ROLE};
use crate::error::BenchError;
use crate::frame::{Site, Testbed};
use crate::machine::bind_processes;
use crate::nodes;
use crate::peer::Peer;

pub(super) use crate::nodes::Node;

#[derive(Default)]
pub(super) struct Nodes {
    nodes: Vec<Node>,
    started: nodes::Nodes,
}

impl Nodes {
    pub(super) fn start(site: &Site, peers: &[Peer]) -> Result<Self, BenchError> {
        let mut started = nodes::Nodes::default();
        let configure: &nodes::Configure<'_> = &|_, socket| {
            let transports = json!([{
                "type": "rawsocket",
                "endpoint": { "type": "unix", "path": socket },
                "serializers": ["msgpack"],
                "auth": Method::configuration()
            }]);
            Ok(nodes::configuration(ROLE, transports))
        };
        let mut nodes = vec![started.start_own(site, configure)?];
        for peer in peers {
            nodes.extend(started.start_peer(site, *peer, configure)?);
        }
        Ok(Self { nodes, started })
    }

    /// All of them, moved there.
    pub(super) fn on(&self, cores: &[usize]) -> Result<Vec<Node>, BenchError> {
        for node in &self.nodes {
            bind_processes(&node.processes, cores)?;
        }
        Ok(self.nodes.clone())
    }

    pub(super) fn testbed(&self) -> Testbed {
        self.started.testbed("nodes")
    }
}
