//! Our own broker on two nodes: the first one owns a vhost, and the second one forwards its clients to it.

use std::net::SocketAddr;
use std::path::Path;

use serde_json::json;

use super::Broker;
use super::node::{self, Node};
use super::replicated::await_open;
use crate::error::BenchError;
use crate::frame::Site;
use crate::peer::nats::{self, NatsServer};

pub(crate) struct Spliced {
    pub(crate) owner: Broker,
    /// The same vhost, on the node that does not own it.
    pub(crate) elsewhere: Broker,
    // Nodes end before their server.
    nodes: [Node; 2],
    server: NatsServer,
}

impl Spliced {
    /// Starts it, and waits until both nodes accept clients. The second one accepts them only if it forwards them,
    /// since the first one has opened the vhost before.
    ///
    /// One server stores the journal, and leaves the flush to disk to the system: a confirm then consists of little but
    /// the work being compared. The second node is a cold standby, which does not read the journal.
    pub(crate) fn start(site: &Site, program: &Path) -> Result<Self, BenchError> {
        let directory = site.directory.path();
        let server = nats::start_one_with_storage(&nats::Starting {
            directory,
            executable: &site.executable,
            place: &site.network.server_place(&site.allowed),
            program,
        })?;
        let nodes = [
            start_node(site, server.address, "vhost-owner")?,
            start_node(site, server.address, "vhost-elsewhere")?,
        ];
        Ok(Self {
            owner: nodes[0].broker.clone(),
            elsewhere: nodes[1].broker.clone(),
            nodes,
            server,
        })
    }

    /// The nodes' processes, if they still run.
    pub(crate) fn processes(&mut self) -> Result<Vec<u32>, BenchError> {
        match self.nodes.iter_mut().all(Node::is_alive) {
            true => Ok(self.nodes.iter().flat_map(Node::processes).collect()),
            false => Err(BenchError::Server {
                name: "a node with a vhost".to_owned(),
                why: "it ended while it was measured".to_owned(),
            }),
        }
    }

    pub(crate) fn server(&self) -> u32 {
        self.server.process.id()
    }
}

fn start_node(site: &Site, nats: SocketAddr, name: &str) -> Result<Node, BenchError> {
    let directory = site.directory.path().join(name);
    let address = site.network.free_server_address()?;
    let replicated = json!({
        "nats": { "urls": [format!("nats://{nats}")] },
        "replicas": 1,
        "standby": "cold",
        "address": site.network.free_server_address()?.to_string(),
        "elsewhere": "splice",
    });
    let config = node::config(address, &directory, Some(replicated));
    let started = Node::start_with(
        &directory,
        &site.executable,
        &site.network,
        (address, config),
    );
    let mut node = started?;
    await_open(&mut node)?;
    Ok(node)
}
