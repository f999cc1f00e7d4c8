//! The WebSocket servers of a comparison: ours or the one at a URL, the floor, and peers. They stay up for the whole
//! run and are moved to the cores of each placement.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::opening::Target;
use super::probe::probe;
use crate::error::BenchError;
use crate::floor::websocket::{self, FloorOrder};
use crate::frame::{
    Common, CommonOptions, FLOOR, Host, OWN, ServerOptions, Site, Subject, Testbed, Usual,
};
use crate::machine::{Moved, bind_processes, process_tree};
use crate::network::{Network, NetworkOptions};
use crate::peer::autobahn::{self, EchoPeer};
use crate::process::{Listening, Workers};
use crate::subject::{Endpoint, ServerProcess, Url, guarded};

/// The options of every comparison of WebSocket servers.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct ServersOptions {
    #[command(flatten)]
    pub(crate) server: ServerOptions<Url>,
    /// autobahn: start, measure and stop an echo server on Autobahn for Python.
    #[arg(long = "peer", value_name = "PEER")]
    peers: Vec<EchoPeer>,
    /// Python interpreter with the peer's packages [default: python3 on PATH].
    #[arg(long, value_name = "FILE", requires = "peers")]
    peer_python: Option<PathBuf>,
    #[command(flatten)]
    pub(super) usual: CommonOptions<OfServers>,
    #[command(flatten)]
    network: NetworkOptions,
}

#[derive(Clone, Debug)]
pub(crate) struct OfServers;

impl Usual for OfServers {
    const RUNS: Option<&'static str> = None;
    const RUNS_WHERE: &'static str = " [default: 5; for a scaling table: 3]";
    const WARM_UP: Option<&'static str> = Some("0.2");
}

impl ServersOptions {
    pub(crate) fn common(&self, host: Host) -> Result<Common, BenchError> {
        self.usual.common(host, &self.server, &self.network)
    }
}

#[derive(Clone)]
pub(crate) struct Server {
    pub(crate) name: String,
    /// The address for clients.
    pub(crate) target: Target,
    /// Empty if unknown.
    pub(crate) processes: Vec<u32>,
}

impl Subject for Server {
    fn name(&self) -> &str {
        &self.name
    }
}

pub(crate) struct Ground<'a> {
    pub(crate) executable: &'a Path,
    pub(crate) directory: &'a Path,
    pub(crate) network: &'a Network,
    pub(crate) cores: &'a [usize],
}

impl<'a> Ground<'a> {
    pub(super) fn of(site: &'a Site) -> Self {
        Self {
            executable: &site.executable,
            directory: site.directory.path(),
            network: &site.network,
            cores: &site.allowed,
        }
    }
}

#[derive(Default)]
pub(crate) struct Servers {
    /// The subject, the floor, then peers.
    pub(crate) servers: Vec<Server>,
    /// Notes for a reader: versions, absences.
    pub(crate) notes: Vec<String>,
    pub(crate) absent: Vec<String>,
    _foreign: Moved,
    _processes: Vec<ServerProcess>,
    _floor: Workers<Listening>,
}

/// A server of this executable starts in milliseconds on an idle machine.
const PATIENCE: Duration = Duration::from_secs(20);

impl Servers {
    pub(crate) fn start(site: &Site, options: &ServersOptions) -> Result<Self, BenchError> {
        let ground = Ground::of(site);
        let mut started = Self::default();
        match &options.server.url {
            Some(url) => started.add_foreign(&ground, url, &site.pids)?,
            None => started.add_testee(&ground, 1)?,
        }
        started.add_floor(&ground)?;
        for peer in &options.peers {
            started.add_peer(&ground, *peer, options.peer_python.as_deref())?;
        }
        Ok(started)
    }

    /// Our testee alone, with a number of workers.
    pub(crate) fn testee(site: &Ground<'_>, workers: usize) -> Result<Self, BenchError> {
        let mut started = Self::default();
        started.add_testee(site, workers)?;
        Ok(started)
    }

    /// All of them, moved there.
    pub(crate) fn on(&self, cores: &[usize]) -> Result<Vec<Server>, BenchError> {
        for server in &self.servers {
            bind_processes(&server.processes, cores)?;
        }
        Ok(self.servers.clone())
    }

    pub(crate) fn testbed(&self) -> Testbed {
        Testbed::of_notes("servers", &self.notes, &self.absent)
    }

    fn add_foreign(
        &mut self,
        site: &Ground<'_>,
        url: &Url,
        pids: &[u32],
    ) -> Result<(), BenchError> {
        let own = Target::new(url).map_err(|error| BenchError::Options(error.to_string()))?;
        let target = Target {
            address: reached(site, &Endpoint::Tcp(own.address))?.address,
            ..own
        };
        self._foreign = Moved::find(pids, "--pid")?;
        if pids.is_empty() {
            self.notes.push(format!(
                "{}: without --pid its processor time is unknown, and it stays on its own cores",
                target.url()
            ));
        }
        self.add(target.url(), target, pids.to_vec())
    }

    fn add_testee(&mut self, site: &Ground<'_>, workers: usize) -> Result<(), BenchError> {
        let address = site.network.free_server_address()?;
        let place = site.network.server_place(site.cores);
        let mut command = guarded(site.executable, &place, site.executable);
        command.args(["testee", "websocket", "--silence", "--no-affinity"]);
        command.args(["--workers", &workers.to_string()]);
        command.args(["--url", &format!("ws://{address}")]);
        self.add_process(site, command, OWN, address, PATIENCE)
    }

    fn add_peer(
        &mut self,
        site: &Ground<'_>,
        peer: EchoPeer,
        python: Option<&Path>,
    ) -> Result<(), BenchError> {
        let address = site.network.free_server_address()?;
        let place = site.network.server_place(site.cores);
        let Some((command, version)) =
            peer.command(python, address, &place, site.directory, site.executable)?
        else {
            self.notes.push(format!(
                "{peer} is absent; to install it: {}",
                peer.installation()
            ));
            self.absent.push(peer.name().to_owned());
            return Ok(());
        };
        self.notes.push(format!("{peer} is {version}"));
        self.add_process(site, command, peer.name(), address, autobahn::PATIENCE)
    }

    /// Starts a server and waits until it shakes hands.
    fn add_process(
        &mut self,
        site: &Ground<'_>,
        command: std::process::Command,
        name: &str,
        address: SocketAddr,
        patience: Duration,
    ) -> Result<(), BenchError> {
        let log = site.directory.join(format!("{name}.log"));
        let mut process = ServerProcess::spawn_logged(command, name, log)?;
        let target = reached(site, &Endpoint::Tcp(address))?;
        process.wait_until(patience, || {
            probe(&target, PATIENCE).map_err(|error| error.to_string())
        })?;
        let processes = process_tree(process.id());
        self._processes.push(process);
        self.servers.push(Server {
            name: name.to_owned(),
            target,
            processes,
        });
        Ok(())
    }

    fn add_floor(&mut self, site: &Ground<'_>) -> Result<(), BenchError> {
        let place = site.network.server_place(site.cores);
        let order = FloorOrder {
            ip: site.network.server_ip(),
        };
        let floor = &mut self._floor;
        let endpoint = floor.start_server(
            "the floor",
            site.executable,
            websocket::ROLE,
            &place,
            &order,
        )?;
        let processes = floor.processes();
        self.add(FLOOR.to_owned(), reached(site, &endpoint)?, processes)
    }

    fn add(&mut self, name: String, target: Target, processes: Vec<u32>) -> Result<(), BenchError> {
        probe(&target, PATIENCE).map_err(|error| BenchError::Options(error.to_string()))?;
        self.servers.push(Server {
            name,
            target,
            processes,
        });
        Ok(())
    }
}

/// The address by which clients reach a server of ours.
fn reached(site: &Ground<'_>, server: &Endpoint) -> Result<Target, BenchError> {
    match site.network.reach(server)? {
        Endpoint::Tcp(address) => Ok(Target {
            address,
            host: server.to_string(),
            resource: "/".to_owned(),
        }),
        Endpoint::Unix(path) => Err(BenchError::Options(format!(
            "{} is no TCP address",
            path.display()
        ))),
    }
}
