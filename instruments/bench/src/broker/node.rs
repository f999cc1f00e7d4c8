//! Our own broker: a node directory with one AMQP transport, started as by a user.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use super::Broker;
use super::url::ACCOUNT;
use crate::error::BenchError;
use crate::frame::OWN;
use crate::machine::{allowed_cores, process_tree};
use crate::network::Network;
use crate::subject::{Endpoint, NodeDirectory, ServerProcess, guarded, own_program};

pub(super) struct Node {
    pub(super) broker: Broker,
    process: ServerProcess,
}

const PATIENCE: Duration = Duration::from_secs(20);

impl Node {
    /// Starts it on the servers' side of a network and waits until it accepts. Its data is in `directory`.
    pub(super) fn start(
        directory: &Path,
        executable: &Path,
        network: &Network,
    ) -> Result<Self, BenchError> {
        let directory = directory.join("broker");
        let address = network.free_server_address()?;
        let config = config(address, &directory, None);
        Self::start_with(&directory, executable, network, (address, config))
    }

    /// The same in that directory, with that configuration.
    pub(super) fn start_with(
        directory: &Path,
        executable: &Path,
        network: &Network,
        (address, config): (SocketAddr, Value),
    ) -> Result<Self, BenchError> {
        let place = network.server_place(&allowed_cores()?);
        let node = NodeDirectory {
            config,
            directory,
            options: &["--loglevel", "warn"],
            patience: PATIENCE,
        };
        let command = guarded(executable, &place, &own_program()?);
        let process = ServerProcess::start_node(command, OWN, &node, [Endpoint::Tcp(address)])?;
        Ok(Self {
            broker: Broker::own(address),
            process,
        })
    }

    /// The node and all its descendants.
    pub(super) fn processes(&self) -> Vec<u32> {
        process_tree(self.process.id())
    }

    pub(super) fn is_alive(&mut self) -> bool {
        self.process.is_alive()
    }

    pub(super) fn wait_until(
        &mut self,
        patience: Duration,
        ready: impl FnMut() -> Result<(), String>,
    ) -> Result<(), BenchError> {
        self.process.wait_until(patience, ready)
    }
}

/// One thread: it has one core in each placement that a goal judges.
pub(super) fn config(address: SocketAddr, directory: &Path, replicated: Option<Value>) -> Value {
    let mut vhost = json!({
        "name": "/",
        "permissions": [{ "user": ACCOUNT, "configure": ".*", "write": ".*", "read": ".*" }]
    });
    if let Some(replicated) = replicated {
        vhost["replicated"] = replicated;
    }
    json!({
        "version": 2,
        "workers": [{
            "type": "router",
            "options": { "threads": 1 },
            "amqp": {
                "users": [{ "name": ACCOUNT, "password": ACCOUNT }],
                "vhosts": [vhost],
                "store": directory.join("amqp.store")
            },
            "transports": [{
                "type": "amqp",
                "endpoint": {
                    "type": "tcp",
                    "interface": address.ip().to_string(),
                    "port": address.port()
                }
            }]
        }]
    })
}
