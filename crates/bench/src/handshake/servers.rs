//! The WebSocket servers of a comparison: ours or the one at a URL, the floor, and peers. They
//! stay up for the whole run and are moved to the cores of each placement.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::opening::Target;
use super::probe::probe;
use crate::error::BenchError;
use crate::floor::websocket::{self, FloorOrder, Report};
use crate::machine::accounting::process_tree;
use crate::machine::placement::{Moved, bind_processes};
use crate::network::Network;
use crate::peer::autobahn::{self, EchoPeer};
use crate::process::crew::Crew;
use crate::subject::server::{ServerProcess, guarded};
use crate::subject::target::{Endpoint, Url};

/// Which servers are to be compared.
#[derive(Clone, Debug, Default)]
pub struct ServersOptions {
    /// Somebody else's server, in place of our testee.
    pub url: Option<Url>,
    /// Its processes: without them its processor time stays unknown, and it runs where it will.
    pub server_pids: Vec<u32>,
    pub peers: Vec<EchoPeer>,
    /// The Python that has what a peer needs.
    pub peer_python: Option<PathBuf>,
}

/// A server that accepts.
pub(crate) struct Server {
    pub(crate) name: String,
    /// Where clients reach it.
    pub(crate) target: Target,
    /// Empty where nobody told which they are.
    pub(crate) processes: Vec<u32>,
}

/// What is needed to start them.
pub(crate) struct Site<'a> {
    pub(crate) executable: &'a Path,
    pub(crate) directory: &'a Path,
    pub(crate) network: &'a Network,
    pub(crate) cores: &'a [usize],
}

/// All of them, running.
pub(crate) struct Servers {
    /// The subject, the floor, then peers.
    pub(crate) servers: Vec<Server>,
    /// What a reader should know of them: versions, absences.
    pub(crate) notes: Vec<String>,
    pub(crate) absent: Vec<&'static str>,
    _foreign: Moved,
    _processes: Vec<ServerProcess>,
    _floor: Crew<Report>,
}

const FLOOR: &str = "floor";

/// A server of this executable starts in milliseconds where nothing else runs.
const PATIENCE: Duration = Duration::from_secs(20);

impl Servers {
    pub(crate) fn start(site: &Site<'_>, options: &ServersOptions) -> Result<Self, BenchError> {
        let mut started = Self {
            servers: Vec::new(),
            notes: Vec::new(),
            absent: Vec::new(),
            _foreign: Moved::default(),
            _processes: Vec::new(),
            _floor: Crew::default(),
        };
        match &options.url {
            Some(url) => started.add_foreign(site, url, &options.server_pids)?,
            None => started.add_testee(site, 1)?,
        }
        started.add_floor(site)?;
        for peer in &options.peers {
            started.add_peer(site, *peer, options.peer_python.as_deref())?;
        }
        Ok(started)
    }

    /// Our testee alone, with a number of workers.
    pub(crate) fn testee(site: &Site<'_>, workers: usize) -> Result<Self, BenchError> {
        let mut started = Self {
            servers: Vec::new(),
            notes: Vec::new(),
            absent: Vec::new(),
            _foreign: Moved::default(),
            _processes: Vec::new(),
            _floor: Crew::default(),
        };
        started.add_testee(site, workers)?;
        Ok(started)
    }

    /// Moves all of them.
    pub(crate) fn move_to(&self, cores: &[usize]) -> Result<(), BenchError> {
        for server in &self.servers {
            bind_processes(&server.processes, cores)?;
        }
        Ok(())
    }

    fn add_foreign(&mut self, site: &Site<'_>, url: &Url, pids: &[u32]) -> Result<(), BenchError> {
        let own = Target::new(url).map_err(|error| BenchError::Options(error.to_string()))?;
        let target = Target {
            address: reached(site, own.address)?.address,
            ..own
        };
        self._foreign = Moved::find(pids, "--server-pid")?;
        if pids.is_empty() {
            self.notes.push(format!(
                "{}: without --server-pid its processor time is unknown, and it runs where it will",
                target.url()
            ));
        }
        self.add(target.url(), target, pids.to_vec())
    }

    fn add_testee(&mut self, site: &Site<'_>, workers: usize) -> Result<(), BenchError> {
        let address = site.network.free_server_address()?;
        let place = site.network.server_place(site.cores);
        let mut command = guarded(site.executable, &place, site.executable);
        command.args(["testee", "websocket", "--silence", "--no-affinity"]);
        command.args(["--workers", &workers.to_string()]);
        command.args(["--url", &format!("ws://{address}")]);
        self.add_process(site, command, "crosstie", address, PATIENCE)
    }

    fn add_peer(
        &mut self,
        site: &Site<'_>,
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
            self.absent.push(peer.name());
            return Ok(());
        };
        self.notes.push(format!("{peer} is {version}"));
        self.add_process(site, command, peer.name(), address, autobahn::PATIENCE)
    }

    /// Starts a server and waits until it shakes hands.
    fn add_process(
        &mut self,
        site: &Site<'_>,
        mut command: std::process::Command,
        name: &str,
        address: SocketAddr,
        patience: Duration,
    ) -> Result<(), BenchError> {
        let log = site.directory.join(format!("{name}.log"));
        command.stderr(fs::File::create(&log)?);
        let mut process = ServerProcess::spawn(command, name)?;
        let target = reached(site, address)?;
        let deadline = Instant::now() + patience;
        while let Err(error) = probe(&target, PATIENCE) {
            let why = if !process.is_alive() {
                "it ended before it listened".to_owned()
            } else if Instant::now() > deadline {
                error.to_string()
            } else {
                // Short against a start, long against a probe's cost.
                std::thread::sleep(Duration::from_millis(1));
                continue;
            };
            let why = format!("{why}; its last words: {}", last_words(&log));
            let name = name.to_owned();
            return Err(BenchError::Server { name, why });
        }
        let processes = process_tree(process.id());
        self._processes.push(process);
        self.servers.push(Server {
            name: name.to_owned(),
            target,
            processes,
        });
        Ok(())
    }

    fn add_floor(&mut self, site: &Site<'_>) -> Result<(), BenchError> {
        let place = site.network.server_place(site.cores);
        let order = FloorOrder {
            ip: site.network.server_ip(),
        };
        let floor = &mut self._floor;
        floor.hire(site.executable, websocket::ROLE, &place, &order)?;
        let fail = |why| {
            let name = FLOOR.to_owned();
            Err(BenchError::Server { name, why })
        };
        let address = match floor.next(Instant::now() + PATIENCE) {
            Some((_, Report::Listening { address })) => address,
            Some((_, Report::Failed { why })) => return fail(why),
            None => return fail(format!("it says nothing within {} s", PATIENCE.as_secs())),
        };
        let processes = floor.processes();
        self.add(FLOOR.to_owned(), reached(site, address)?, processes)
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

/// Where clients connect to in order to reach a server of ours.
fn reached(site: &Site<'_>, server: SocketAddr) -> Result<Target, BenchError> {
    match site.network.reach(&Endpoint::Tcp(server))? {
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

fn last_words(log: &Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    lines[lines.len().saturating_sub(3)..].join(" / ")
}
