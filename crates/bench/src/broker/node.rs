//! Our own broker: a node directory with one AMQP transport, started as a user would.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use super::Broker;
use super::url::ACCOUNT;
use crate::error::BenchError;
use crate::machine::{allowed_cores, process_tree};
use crate::network::Network;
use crate::peer::crossbar::last_words;
use crate::subject::{Endpoint, ServerProcess, guarded};

pub(super) struct Node {
    pub(super) broker: Broker,
    process: ServerProcess,
}

const PATIENCE: Duration = Duration::from_secs(20);

impl Node {
    /// Starts it on the servers' side of a network and waits until it accepts. What it stores goes
    /// to `directory`.
    pub(super) fn start(
        directory: &Path,
        executable: &Path,
        network: &Network,
    ) -> Result<Self, BenchError> {
        let directory = directory.join("broker");
        fs::create_dir_all(&directory)?;
        let address = network.free_server_address()?;
        let config = serde_json::to_vec_pretty(&config(address, &directory));
        fs::write(
            directory.join("config.json"),
            config.map_err(std::io::Error::from)?,
        )?;
        let place = network.server_place(&allowed_cores()?);
        let mut command = guarded(executable, &place, executable);
        command
            .args(["start", "--loglevel", "warn", "--cbdir"])
            .arg(&directory);
        let log = directory.join("broker.log");
        command.stderr(fs::File::create(&log)?);
        let mut process = ServerProcess::spawn(command, "crosstie")?;
        let accepts = process.wait_until_it_accepts(&Endpoint::Tcp(address), PATIENCE);
        if let Err(error) = accepts {
            let why = format!("{error}; its last words: {}", last_words(&log));
            let name = "crosstie".to_owned();
            return Err(BenchError::Server { name, why });
        }
        Ok(Self {
            broker: Broker::own(address),
            process,
        })
    }

    /// The node and everything that it has started.
    pub(super) fn processes(&self) -> Vec<u32> {
        process_tree(self.process.id())
    }

    pub(super) fn is_alive(&mut self) -> bool {
        self.process.is_alive()
    }
}

/// One thread: it is given one core in each placement that a goal looks at.
fn config(address: SocketAddr, directory: &Path) -> Value {
    json!({
        "version": 2,
        "workers": [{
            "type": "router",
            "options": { "threads": 1 },
            "amqp": {
                "users": [{ "name": ACCOUNT, "password": ACCOUNT }],
                "vhosts": [{
                    "name": "/",
                    "permissions": [{
                        "user": ACCOUNT, "configure": ".*", "write": ".*", "read": ".*"
                    }]
                }],
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
