//! The servers: our node, and peers, with the same services.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;

use serde_json::{Map, Value, json};

use super::case::Case;
use super::driver::Asker;
use super::options::{HttpOptions, HttpPeer};
use super::request::{FILE, Request, file};
use crate::error::BenchError;
use crate::frame::{Site, Subject, Testbed};
use crate::machine::{bind_processes, process_tree};
use crate::nodes::{Node, Nodes};
use crate::peer::{Peer, nginx};
use crate::subject::{REALM, Target, guarded, node_configuration};

/// Of the node's directory.
const FILES: &str = "files";
const ROLE: &str = "anonymous";
/// Paths of the web services.
pub(super) const LONG_POLL_PATH: &str = "lp";
pub(super) const WEBSOCKET_PATH: &str = "ws";
/// Longer than any round: waiting clients send one request.
const REQUEST_TIMEOUT_S: u64 = 120;

#[derive(Clone)]
pub(super) struct Server {
    name: &'static str,
    pub(super) address: SocketAddr,
    /// The callee's address; `None` without WAMP.
    pub(super) target: Option<Target>,
    pub(super) processes: Vec<u32>,
}

#[derive(Default)]
pub(super) struct Servers {
    servers: Vec<Server>,
    started: Nodes,
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
        let address = site.network.free_server_address()?;
        let configure = own_configuration(address, &cases);
        let node = started.started.start_own(site, &configure)?;
        started.add(node, address)?;
        for peer in &options.peers {
            match peer {
                HttpPeer::Crossbar => started.add_crossbar(site, &cases)?,
                HttpPeer::Nginx => started.add_nginx(site)?,
            }
        }
        Ok(started)
    }

    /// Our node once more, freshly started: memory that was returned would be used again.
    pub(super) fn start_another(site: &Site, name: &str) -> Result<(Nodes, Server), BenchError> {
        let mut started = Self::default();
        let address = site.network.free_server_address()?;
        let configure = own_configuration(address, &[Case::Waiting]);
        let node = started.started.start_another(site, name, &configure)?;
        started.add(node, address)?;
        let server = started.servers.remove(0);
        Ok((started.started, server))
    }

    /// Those that support the case, moved there.
    pub(super) fn on(&self, cores: &[usize], case: Case) -> Result<Vec<Server>, BenchError> {
        let has = |server: &&Server| case.is_supported_by(server.name, server.target.is_some());
        let servers: Vec<Server> = self.servers.iter().filter(has).cloned().collect();
        for server in &servers {
            bind_processes(&server.processes, cores)?;
        }
        Ok(servers)
    }

    pub(super) fn testbed(&self) -> Testbed {
        self.started.testbed("servers")
    }

    fn add_crossbar(&mut self, site: &Site, cases: &[Case]) -> Result<(), BenchError> {
        let address = site.network.free_server_address()?;
        let configure = |directory: &Path, socket: &Path| {
            put_file(directory)?;
            Ok(configuration(address, socket, &services(cases)))
        };
        let node = self.started.start_peer(site, Peer::Crossbar, &configure)?;
        match node {
            Some(node) => self.add(node, address),
            None => Ok(()),
        }
    }

    fn add_nginx(&mut self, site: &Site) -> Result<(), BenchError> {
        let name = HttpPeer::Nginx.name();
        let Some(program) = nginx::find() else {
            let note = format!(
                "{name}: absent from PATH; to get it: {}",
                nginx::INSTALLATION
            );
            self.started.note_absent(name, note);
            return Ok(());
        };
        self.started
            .note(format!("{name}: {}", nginx::version(&program)));
        let directory = site.directory.path().join(name);
        put_file(&directory)?;
        let address = site.network.free_server_address()?;
        let place = site.network.server_place(&site.allowed);
        let command = guarded(&site.executable, &place, &program);
        let process = nginx::start(command, &directory, &directory.join(FILES), address)?;
        let processes = process_tree(process.id());
        self.started.keep(process);
        self.add_server(Server {
            name,
            address,
            target: None,
            processes,
        })
    }

    fn add(&mut self, node: Node, address: SocketAddr) -> Result<(), BenchError> {
        self.add_server(Server {
            name: node.name,
            address,
            target: Some(node.target),
            processes: node.processes,
        })
    }

    /// Once it answers correctly.
    fn add_server(&mut self, server: Server) -> Result<(), BenchError> {
        self.started.wait_until(|| {
            let asked = Asker::connect(Request::File, server.address, "", 0);
            let asked = asked.and_then(|mut one| one.ask());
            asked.map_err(|error| error.to_string())
        })?;
        self.servers.push(server);
        Ok(())
    }
}

fn put_file(directory: &Path) -> Result<(), BenchError> {
    let files = directory.join(FILES);
    fs::create_dir_all(&files)?;
    Ok(fs::write(files.join(FILE), file())?)
}

/// A peer's configuration, with our additions.
fn own_configuration(
    address: SocketAddr,
    cases: &[Case],
) -> impl Fn(&Path, &Path) -> Result<Value, BenchError> {
    let mut services = services(cases);
    let waiting = json!({ "request_timeout": REQUEST_TIMEOUT_S, "session_timeout": 5 });
    services.insert(
        LONG_POLL_PATH.to_owned(),
        json!({ "type": "longpoll", "options": waiting }),
    );
    services.insert(WEBSOCKET_PATH.to_owned(), json!({ "type": "websocket" }));
    move |directory, socket| {
        put_file(directory)?;
        Ok(configuration(address, socket, &services))
    }
}

fn services(cases: &[Case]) -> Map<String, Value> {
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
    paths
}

/// The requested services, and a transport for the callee.
fn configuration(address: SocketAddr, socket: &Path, paths: &Map<String, Value>) -> Value {
    let transports = json!([
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
    ]);
    node_configuration(ROLE, transports)
}
