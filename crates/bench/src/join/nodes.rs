//! The nodes that sessions join: ours and peers, each on a directory of its own with the same configuration.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use super::credentials::{Method, ROLE};
use crate::error::BenchError;
use crate::frame::{OWN, Site, Subject, Testbed};
use crate::machine::{bind_processes, process_tree};
use crate::peer::Peer;
use crate::peer::crossbar::{find_on_path, version};
use crate::subject::{Case, Endpoint, NodeDirectory, REALM, ServerProcess, Target, guarded};

/// Crossbar.io starts in three to five seconds where nothing else runs.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Clone)]
pub(super) struct Node {
    name: &'static str,
    pub(super) target: Target,
    pub(super) processes: Vec<u32>,
}

#[derive(Default)]
pub(super) struct Nodes {
    nodes: Vec<Node>,
    running: Vec<ServerProcess>,
    notes: Vec<String>,
    absent: Vec<String>,
}

impl Subject for Node {
    fn name(&self) -> &str {
        self.name
    }
}

impl Nodes {
    pub(super) fn start(site: &Site, peers: &[Peer]) -> Result<Self, BenchError> {
        let mut started = Self::default();
        // One thread, as a worker of Crossbar.io has.
        started.add(
            site,
            OWN,
            &site.executable,
            &["--loglevel", "error", "--threads", "1"],
        )?;
        for peer in peers {
            let Some(program) = find_on_path(peer.name()) else {
                started.notes.push(peer.note(None));
                started.absent.push(peer.name().to_owned());
                continue;
            };
            started.notes.push(peer.note(Some(&version(&program))));
            started.add(site, peer.name(), &program, &["--loglevel", "error"])?;
        }
        Ok(started)
    }

    /// All of them, moved there.
    pub(super) fn on(&self, cores: &[usize]) -> Result<Vec<Node>, BenchError> {
        for node in &self.nodes {
            bind_processes(&node.processes, cores)?;
        }
        Ok(self.nodes.clone())
    }

    pub(super) fn testbed(&self) -> Testbed {
        Testbed::of_notes("nodes", &self.notes, &self.absent)
    }

    fn add(
        &mut self,
        site: &Site,
        name: &'static str,
        program: &Path,
        options: &[&str],
    ) -> Result<(), BenchError> {
        let directory = site.directory.path().join(name);
        let endpoint = Endpoint::Unix(directory.join("router.sock"));
        let place = site.network.server_place(&site.allowed);
        let command = guarded(&site.executable, &place, program);
        let node = NodeDirectory {
            config: configuration(&directory.join("router.sock")),
            directory: &directory,
            options,
            patience: PATIENCE,
        };
        let process = ServerProcess::start_node(command, name, &node, [endpoint.clone()])?;
        self.nodes.push(Node {
            name,
            target: Target::own(endpoint, Case::OF_THE_DOCUMENT[0], "/"),
            processes: process_tree(process.id()),
        });
        self.running.push(process);
        Ok(())
    }
}

fn configuration(socket: &Path) -> Value {
    json!({
        "version": 2,
        "workers": [{
            "type": "router",
            "realms": [{
                "name": REALM,
                "roles": [{
                    "name": ROLE,
                    "permissions": [{
                        "uri": "",
                        "match": "prefix",
                        "allow": {
                            "call": true, "register": true, "publish": true, "subscribe": true
                        },
                        "disclose": { "caller": false, "publisher": false },
                        "cache": true
                    }]
                }]
            }],
            "transports": [{
                "type": "rawsocket",
                "endpoint": { "type": "unix", "path": socket },
                "serializers": ["msgpack"],
                "auth": Method::configuration()
            }]
        }]
    })
}
