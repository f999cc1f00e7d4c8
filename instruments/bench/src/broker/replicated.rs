//! Our own broker on three nodes: a vhost that any of them can take over from its owner, and three NATS servers that
//! store its journal.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use super::Broker;
use super::node::{self, Node};
use super::wire::Wire;
use crate::error::BenchError;
use crate::machine::allowed_cores;
use crate::network::Network;
use crate::peer::nats::{self, NatsServer};

pub(super) struct Replicated {
    /// The owner's.
    pub(super) broker: Broker,
    // Nodes end before their servers.
    nodes: Vec<Node>,
    servers: Vec<NatsServer>,
}

/// Time for the servers' election, the stream's creation, and the owner's opening.
const PATIENCE: Duration = Duration::from_secs(60);

impl Replicated {
    /// Starts it, and waits until the first node has opened the vhost.
    pub(super) fn start(
        directory: &Path,
        executable: &Path,
        network: &Network,
        program: &Path,
    ) -> Result<Self, BenchError> {
        let place = network.server_place(&allowed_cores()?);
        let servers = nats::start_three(&nats::Starting {
            directory,
            executable,
            place: &place,
            program,
        })?;
        let mut nodes = Vec::new();
        for at in 0..servers.len() {
            let directory = directory.join(format!("broker-{at}"));
            let address = network.free_server_address()?;
            let replicated = replicated(&servers, network.free_server_address()?);
            let config = node::config(address, &directory, Some(replicated));
            let mut node = Node::start_with(&directory, executable, network, (address, config))?;
            if at == 0 {
                await_open(&mut node)?;
            }
            nodes.push(node);
        }
        Ok(Self {
            broker: nodes[0].broker.clone(),
            nodes,
            servers,
        })
    }

    /// The nodes and the NATS servers, whose costs are counted together.
    pub(super) fn processes(&self) -> Vec<u32> {
        let of_nodes = self.nodes.iter().flat_map(Node::processes);
        let of_servers = self.servers.iter().map(|server| server.process.id());
        of_nodes.chain(of_servers).collect()
    }

    pub(super) fn is_alive(&mut self) -> bool {
        self.nodes.iter_mut().all(Node::is_alive)
    }
}

/// Waits until it accepts a client.
pub(super) fn await_open(node: &mut Node) -> Result<(), BenchError> {
    let broker = node.broker.clone();
    node.wait_until(PATIENCE, || {
        let wire = Wire::open(&broker, "crosstie bench").map_err(|error| error.to_string())?;
        let _ = wire.close();
        Ok(())
    })
}

fn replicated(servers: &[NatsServer], address: SocketAddr) -> Value {
    let urls = servers
        .iter()
        .map(|server| format!("nats://{}", server.address));
    let monitors = servers.iter().filter_map(|server| server.monitor);
    json!({
        "nats": { "urls": urls.collect::<Vec<_>>() },
        "replicas": servers.len(),
        "address": address.to_string(),
        "monitor": monitors.map(|at| format!("http://{at}")).collect::<Vec<_>>(),
    })
}
