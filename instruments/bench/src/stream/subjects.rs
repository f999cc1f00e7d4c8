//! The subjects of a case, started for it: the testee or a foreign server, the floors, netserver. All of them end with
//! this.

use std::time::Duration;

use super::address::Address;
use super::case::Case;
use super::driver::{DriverOrder, Go};
use super::floor::{FloorOrder, ROLE};
use super::local::sources;
use super::netperf::{self, Netperf};
use super::options::StreamOptions;
use super::round::{self, Plan};
use super::testee::Testee;
use crate::error::BenchError;
use crate::figures::Figures;
use crate::floor::relay::Waiting;
use crate::frame::{FLOOR, OWN, Site, Stage, instrument};
use crate::machine::{Moved, process_tree};
use crate::process::{Listening, Place, Workers};
use crate::subject::{Endpoint, ServerProcess, Socket};

pub(super) struct Subject {
    pub(super) name: String,
    endpoint: Endpoint,
    processes: Vec<u32>,
    _server: Server,
    /// Set if netperf is its driver, because no other can be.
    netperf: Option<Netperf>,
}

/// Keeps a server alive.
enum Server {
    Stranger { _moved: Moved },
    Process { _process: ServerProcess },
    Floor { _floor: Workers<Listening> },
}

/// Together they have enough ports that none is reused within a second or two.
const SOURCES: usize = 8;

impl instrument::Subject for Subject {
    fn name(&self) -> &str {
        &self.name
    }
}

/// All subjects of a case, in the order of their turns.
pub(super) fn start(
    options: &StreamOptions,
    stage: &Stage<'_>,
    case: Case,
    netperf: Option<&Netperf>,
) -> Result<Vec<Subject>, BenchError> {
    let own = match &options.server.url {
        Some(address) => {
            let stranger = stranger(stage, address)?;
            stranger.probe(options, stage, case)?;
            stranger
        }
        None => testee(stage, case)?,
    };
    let epoll = floor(stage, case, Waiting::Epoll, FLOOR)?;
    let blocking = floor(stage, case, Waiting::Blocking, "floor, blocking")?;
    let mut subjects = vec![own, epoll, blocking];
    // Its data would bypass a delay line: only the control connection knows the data's port.
    if let Some(netperf) = netperf
        && Netperf::serves(&case)
        && options.common.network.link.is_none()
    {
        subjects.push(netserver(stage, netperf)?);
    }
    Ok(subjects)
}

fn stranger(stage: &Stage<'_>, address: &Address) -> Result<Subject, BenchError> {
    let moved = Moved::find(&stage.site.pids, "--pid")?;
    moved.bind(&stage.cores.router)?;
    Ok(Subject {
        name: Address::of(&address.0),
        endpoint: stage.site.network.reach(&address.0)?,
        processes: moved.processes().to_vec(),
        _server: Server::Stranger { _moved: moved },
        netperf: None,
    })
}

fn testee(stage: &Stage<'_>, case: Case) -> Result<Subject, BenchError> {
    let testee = Testee {
        executable: &stage.site.executable,
        directory: stage.site.directory.path(),
        place: &stage.servers(),
        endpoint: free_endpoint(stage.site, case.socket, "testee")?,
        mode: case.mode,
        workers: 1,
    };
    let (process, endpoint) = testee.start(&stage.site.network)?;
    Ok(Subject {
        name: OWN.to_owned(),
        endpoint,
        processes: process_tree(process.id()),
        _server: Server::Process { _process: process },
        netperf: None,
    })
}

fn floor(
    stage: &Stage<'_>,
    case: Case,
    waiting: Waiting,
    name: &str,
) -> Result<Subject, BenchError> {
    let order = FloorOrder {
        endpoint: free_endpoint(stage.site, case.socket, waiting.name())?,
        mode: case.mode,
        waiting,
        shared_port: false,
    };
    let mut floor = Workers::default();
    let program = &stage.site.executable;
    let name_in_errors = "the floor's server";
    let endpoint = floor.start_server(name_in_errors, program, ROLE, &stage.servers(), &order)?;
    Ok(Subject {
        name: name.to_owned(),
        endpoint: stage.site.network.reach(&endpoint)?,
        processes: floor.processes(),
        _server: Server::Floor { _floor: floor },
        netperf: None,
    })
}

fn netserver(stage: &Stage<'_>, netperf: &Netperf) -> Result<Subject, BenchError> {
    let address = stage.site.network.free_server_address()?;
    let process = netperf.start(&stage.site.executable, &stage.servers(), address)?;
    Ok(Subject {
        name: netperf::NAME.to_owned(),
        endpoint: Endpoint::Tcp(address),
        processes: Vec::new(),
        _server: Server::Process { _process: process },
        netperf: Some(netperf.clone()),
    })
}

fn free_endpoint(site: &Site, socket: Socket, name: &str) -> Result<Endpoint, BenchError> {
    Ok(match socket {
        Socket::Tcp => Endpoint::Tcp(site.network.free_server_address()?),
        Socket::Unix => {
            let path = site.directory.path().join(format!("{name}.sock"));
            // An earlier case's server of this name has left its own behind.
            let _ = std::fs::remove_file(&path);
            Endpoint::Unix(path)
        }
    })
}

impl Subject {
    /// Checks that a foreign server is there and behaves as the case requires.
    fn probe(
        &self,
        options: &StreamOptions,
        stage: &Stage<'_>,
        case: Case,
    ) -> Result<(), BenchError> {
        let order = self.order(options, stage, case);
        round::probe(&self.plan(options, stage, &order, &stage.clients()))
            .map_err(|why| BenchError::Options(format!("{}: {why}", self.name)))
    }

    pub(super) fn round(
        &self,
        options: &StreamOptions,
        stage: &Stage<'_>,
        case: Case,
    ) -> Result<Figures, String> {
        let place = stage.clients();
        if let (Some(netperf), Endpoint::Tcp(address)) = (&self.netperf, &self.endpoint) {
            return netperf.run(&netperf::Round {
                executable: &stage.site.executable,
                place: &place,
                case,
                address: *address,
                measured: Duration::from_secs_f64(options.common.seconds),
                request_bytes: options.request_bytes,
                send_bytes: options.send_bytes,
            });
        }
        let order = self.order(options, stage, case);
        round::run(&self.plan(options, stage, &order, &place))
    }

    fn order(&self, options: &StreamOptions, stage: &Stage<'_>, case: Case) -> DriverOrder {
        DriverOrder {
            case,
            sources: sources(&stage.site.network, &self.endpoint, SOURCES),
            endpoint: self.endpoint.clone(),
            request_bytes: options.request_bytes,
            send_bytes: options.send_bytes,
        }
    }

    fn plan<'a>(
        &'a self,
        options: &StreamOptions,
        stage: &Stage<'a>,
        order: &'a DriverOrder,
        place: &'a Place,
    ) -> Plan<'a> {
        Plan {
            executable: &stage.site.executable,
            place,
            order,
            processes: &self.processes,
            go: Go {
                warm_up: Duration::from_secs_f64(options.common.warm_up_seconds),
                measured: Duration::from_secs_f64(options.common.seconds),
            },
        }
    }

    pub(super) fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }
}
