//! What is measured in a case, started for it: the testee or somebody else's server, the floors,
//! netserver. All of them end with this.

use std::time::{Duration, Instant};

use super::Bench;
use super::address::Address;
use super::case::Case;
use super::driver::{DriverOrder, Go};
use super::floor::{FloorOrder, ROLE as FLOOR, Report as FloorReport};
use super::local::sources;
use super::netperf::{self, Netperf};
use super::round::{self, Plan};
use super::testee::Testee;
use crate::error::BenchError;
use crate::figures::Figures;
use crate::floor::relay::Waiting;
use crate::machine::accounting::process_tree;
use crate::machine::placement::{Cores, Moved};
use crate::process::crew::Crew;
use crate::process::place::Place;
use crate::subject::case::Socket;
use crate::subject::server::ServerProcess;
use crate::subject::target::Endpoint;

/// One server that is there.
pub(super) struct Subject {
    pub(super) name: String,
    /// What its clients connect to.
    endpoint: Endpoint,
    processes: Vec<u32>,
    _server: Server,
    /// Where netperf is its driver, because nothing else can be.
    netperf: Option<Netperf>,
}

/// Keeps a server alive; what there is of it to be kept.
enum Server {
    Stranger { _moved: Moved },
    Process { _process: ServerProcess },
    Floor { _crew: Crew<FloorReport> },
}

/// Together they have ports enough that none is used again within a second or two.
const SOURCES: usize = 8;

/// How long a server may take to start.
const PATIENCE: Duration = Duration::from_secs(10);

/// All subjects of a case, in the order in which they take turns.
pub(super) fn start(bench: &Bench, case: Case, cores: &Cores) -> Result<Vec<Subject>, BenchError> {
    let mut subjects = vec![match &bench.options.connect {
        Some(address) => stranger(bench, address, cores)?,
        None => testee(bench, case, cores)?,
    }];
    subjects.push(floor(bench, case, cores, Waiting::Epoll, "floor")?);
    subjects.push(floor(
        bench,
        case,
        cores,
        Waiting::Blocking,
        "floor, blocking",
    )?);
    // Its data would go around a link: only the control connection knows of that.
    if let Some(netperf) = &bench.netperf
        && Netperf::serves(&case)
        && bench.options.network.link.is_none()
    {
        subjects.push(netserver(bench, netperf, cores)?);
    }
    Ok(subjects)
}

fn stranger(bench: &Bench, address: &Address, cores: &Cores) -> Result<Subject, BenchError> {
    let moved = Moved::find(&bench.options.server_pids, "--server-pid")?;
    moved.bind(&cores.router)?;
    Ok(Subject {
        name: Address::of(&address.0),
        endpoint: bench.network.reach(&address.0)?,
        processes: moved.processes().to_vec(),
        _server: Server::Stranger { _moved: moved },
        netperf: None,
    })
}

fn testee(bench: &Bench, case: Case, cores: &Cores) -> Result<Subject, BenchError> {
    let testee = Testee {
        executable: &bench.executable,
        directory: bench.directory.path(),
        place: &bench.network.server_place(&cores.router),
        endpoint: free_endpoint(bench, case.socket, "testee")?,
        mode: case.mode,
        workers: 1,
    };
    let (process, endpoint) = testee.start(&bench.network)?;
    Ok(Subject {
        name: "crosstie".to_owned(),
        endpoint,
        processes: process_tree(process.id()),
        _server: Server::Process { _process: process },
        netperf: None,
    })
}

fn floor(
    bench: &Bench,
    case: Case,
    cores: &Cores,
    waiting: Waiting,
    name: &str,
) -> Result<Subject, BenchError> {
    let order = FloorOrder {
        endpoint: free_endpoint(bench, case.socket, waiting.name())?,
        mode: case.mode,
        waiting,
        shared_port: false,
    };
    let place = bench.network.server_place(&cores.router);
    let mut crew = Crew::default();
    let endpoint = start_floor(&mut crew, bench, &place, &order)?;
    Ok(Subject {
        name: name.to_owned(),
        endpoint: bench.network.reach(&endpoint)?,
        processes: crew.processes(),
        _server: Server::Floor { _crew: crew },
        netperf: None,
    })
}

fn start_floor(
    crew: &mut Crew<FloorReport>,
    bench: &Bench,
    place: &Place,
    order: &FloorOrder,
) -> Result<Endpoint, BenchError> {
    crew.hire(&bench.executable, FLOOR, place, order)?;
    let why = match crew.next(Instant::now() + PATIENCE) {
        Some((_, FloorReport::Ready { endpoint })) => return Ok(endpoint),
        Some((_, FloorReport::Failed { why })) => why,
        None => format!("nothing for {} s", PATIENCE.as_secs()),
    };
    let name = "the floor's server".to_owned();
    Err(BenchError::Server { name, why })
}

fn netserver(bench: &Bench, netperf: &Netperf, cores: &Cores) -> Result<Subject, BenchError> {
    let address = bench.network.free_server_address()?;
    let place = bench.network.server_place(&cores.router);
    let process = netperf.start(&bench.executable, &place, address)?;
    Ok(Subject {
        name: netperf::NAME.to_owned(),
        endpoint: Endpoint::Tcp(address),
        processes: Vec::new(),
        _server: Server::Process { _process: process },
        netperf: Some(netperf.clone()),
    })
}

fn free_endpoint(bench: &Bench, socket: Socket, name: &str) -> Result<Endpoint, BenchError> {
    Ok(match socket {
        Socket::Tcp => Endpoint::Tcp(bench.network.free_server_address()?),
        Socket::Unix => {
            let path = bench.directory.path().join(format!("{name}.sock"));
            // An earlier case's server of this name has left its own behind.
            let _ = std::fs::remove_file(&path);
            Endpoint::Unix(path)
        }
    })
}

impl Subject {
    /// Finds out whether somebody else's server is there and does what the case says.
    pub(super) fn probe(&self, bench: &Bench, case: Case, place: &Place) -> Result<(), BenchError> {
        let order = self.order(bench, case);
        round::probe(&self.plan(bench, &order, place))
            .map_err(|why| BenchError::Options(format!("{}: {why}", self.name)))
    }

    /// One round.
    pub(super) fn round(
        &self,
        bench: &Bench,
        case: Case,
        place: &Place,
    ) -> Result<Figures, String> {
        if let (Some(netperf), Endpoint::Tcp(address)) = (&self.netperf, &self.endpoint) {
            return netperf.run(&netperf::Round {
                executable: &bench.executable,
                place,
                case,
                address: *address,
                measured: Duration::from_secs_f64(bench.options.seconds),
                request_bytes: bench.options.request_bytes,
                send_bytes: bench.options.send_bytes,
            });
        }
        let order = self.order(bench, case);
        round::run(&self.plan(bench, &order, place))
    }

    fn order(&self, bench: &Bench, case: Case) -> DriverOrder {
        DriverOrder {
            case,
            sources: sources(&bench.network, &self.endpoint, SOURCES),
            endpoint: self.endpoint.clone(),
            request_bytes: bench.options.request_bytes,
            send_bytes: bench.options.send_bytes,
        }
    }

    fn plan<'a>(&'a self, bench: &'a Bench, order: &'a DriverOrder, place: &'a Place) -> Plan<'a> {
        Plan {
            executable: &bench.executable,
            place,
            order,
            processes: &self.processes,
            go: Go {
                warm_up: Duration::from_secs_f64(bench.options.warm_up_seconds),
                measured: Duration::from_secs_f64(bench.options.seconds),
            },
        }
    }

    pub(super) fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }
}
