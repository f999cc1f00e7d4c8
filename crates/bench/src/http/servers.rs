//! Who is asked: our node, and peers, each on a directory of its own with the same services.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::case::{Case, FILE, file};
use super::driver::Asker;
use super::options::{HttpOptions, HttpPeer};
use crate::error::BenchError;
use crate::frame::{OWN, Site, Subject, Testbed};
use crate::machine::{bind_processes, process_tree};
use crate::peer::Peer;
use crate::peer::crossbar::{find_on_path, version};
use crate::peer::nginx;
use crate::subject::{
    Case as Transport, Endpoint, NodeDirectory, REALM, ServerProcess, Target, guarded,
};

/// Crossbar.io starts in three to five seconds where nothing else runs.
const PATIENCE: Duration = Duration::from_secs(60);
/// Of the node's directory.
const FILES: &str = "files";
const ROLE: &str = "anonymous";

#[derive(Clone)]
pub(super) struct Server {
    name: &'static str,
    pub(super) address: SocketAddr,
    /// Where the callee joins; nothing where there is no WAMP.
    pub(super) target: Option<Target>,
    pub(super) processes: Vec<u32>,
}

#[derive(Default)]
pub(super) struct Servers {
    servers: Vec<Server>,
    running: Vec<ServerProcess>,
    notes: Vec<String>,
    absent: Vec<String>,
}

impl Subject for Server {
    fn name(&self) -> &str {
        self.name
    }
}

impl Servers {
    pub(super) fn start(site: &Site, options: &HttpOptions) -> Result<Self, BenchError> {
        let mut started = Self::default();
        let cases = options.definite_cases();
        // One thread for messages and one for requests, as a worker of Crossbar.io has one for both.
        let arguments = ["--loglevel", "error", "--threads", "1"];
        started.add_node(site, OWN, &site.executable, &arguments, &cases)?;
        for peer in &options.peers {
            match peer {
                HttpPeer::Crossbar => started.add_crossbar(site, &cases)?,
                HttpPeer::Nginx => started.add_nginx(site)?,
            }
        }
        Ok(started)
    }

    /// Those that have what the case asks for, moved there.
    pub(super) fn on(&self, cores: &[usize], case: Case) -> Result<Vec<Server>, BenchError> {
        let has = |server: &&Server| case == Case::File || server.target.is_some();
        let servers: Vec<Server> = self.servers.iter().filter(has).cloned().collect();
        for server in &servers {
            bind_processes(&server.processes, cores)?;
        }
        Ok(servers)
    }

    pub(super) fn testbed(&self) -> Testbed {
        Testbed::of_notes("servers", &self.notes, &self.absent)
    }

    fn add_crossbar(&mut self, site: &Site, cases: &[Case]) -> Result<(), BenchError> {
        let peer = Peer::Crossbar;
        let Some(program) = find_on_path(peer.name()) else {
            self.notes.push(peer.note(None));
            self.absent.push(peer.name().to_owned());
            return Ok(());
        };
        self.notes.push(peer.note(Some(&version(&program))));
        let arguments = ["--loglevel", "error"];
        self.add_node(site, peer.name(), &program, &arguments, cases)
    }

    fn add_node(
        &mut self,
        site: &Site,
        name: &'static str,
        program: &Path,
        arguments: &[&str],
        cases: &[Case],
    ) -> Result<(), BenchError> {
        let directory = site.directory.path().join(name);
        let files = directory.join(FILES);
        fs::create_dir_all(&files)?;
        fs::write(files.join(FILE), file())?;
        let address = site.network.free_server_address()?;
        let socket = Endpoint::Unix(directory.join("router.sock"));
        let place = site.network.server_place(&site.allowed);
        let command = guarded(&site.executable, &place, program);
        let node = NodeDirectory {
            config: configuration(address, &directory.join("router.sock"), cases),
            directory: &directory,
            options: arguments,
            patience: PATIENCE,
        };
        let process = ServerProcess::start_node(command, name, &node, [socket.clone()])?;
        let target = Target::own(socket, Transport::OF_THE_DOCUMENT[0], "/");
        self.add(name, process, address, Some(target))
    }

    fn add_nginx(&mut self, site: &Site) -> Result<(), BenchError> {
        let name = HttpPeer::Nginx.name();
        let Some(program) = nginx::find() else {
            self.notes.push(format!(
                "{name}: absent from PATH; to get it: {}",
                nginx::INSTALLATION
            ));
            self.absent.push(name.to_owned());
            return Ok(());
        };
        self.notes
            .push(format!("{name}: {}", nginx::version(&program)));
        let directory = site.directory.path().join(name);
        let files = directory.join(FILES);
        fs::create_dir_all(&files)?;
        fs::write(files.join(FILE), file())?;
        let address = site.network.free_server_address()?;
        let place = site.network.server_place(&site.allowed);
        let command = guarded(&site.executable, &place, &program);
        let process = nginx::start(command, &directory, &files, address)?;
        self.add(name, process, address, None)
    }

    /// Once it answers rightly.
    fn add(
        &mut self,
        name: &'static str,
        mut process: ServerProcess,
        address: SocketAddr,
        target: Option<Target>,
    ) -> Result<(), BenchError> {
        process.wait_until(PATIENCE, || {
            let asked = Asker::connect(Case::File, address, "", 0).and_then(|mut one| one.ask());
            asked.map_err(|error| error.to_string())
        })?;
        self.servers.push(Server {
            name,
            address,
            target,
            processes: process_tree(process.id()),
        });
        self.running.push(process);
        Ok(())
    }
}

/// What is asked for, and a transport for who is called.
fn configuration(address: SocketAddr, socket: &Path, cases: &[Case]) -> Value {
    let mut paths = Map::new();
    paths.insert(
        "/".to_owned(),
        json!({ "type": "static", "directory": FILES }),
    );
    for (case, kind) in [(Case::Call, "caller"), (Case::Publish, "publisher")] {
        if cases.contains(&case) {
            let bridge = json!({ "type": kind, "realm": REALM, "role": ROLE, "options": {} });
            paths.insert(case.name().to_owned(), bridge);
        }
    }
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
            "transports": [
                {
                    "type": "web",
                    "endpoint": {
                        "type": "tcp",
                        "interface": address.ip().to_string(),
                        "port": address.port(),
                        "backlog": 1024
                    },
                    "paths": paths
                },
                {
                    "type": "rawsocket",
                    "endpoint": { "type": "unix", "path": socket },
                    "serializers": ["msgpack"]
                }
            ]
        }]
    })
}
