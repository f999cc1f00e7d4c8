//! The servers that hold the connections: the testee, a foreign server, the floor.

use std::net::SocketAddr;

use super::Plan;
use crate::error::BenchError;
use crate::floor::relay::Waiting;
use crate::machine::process_tree;
use crate::process::{Listening, Workers};
use crate::stream::address::Address;
use crate::stream::case::Mode;
use crate::stream::floor::{FloorOrder, ROLE as FLOOR};
use crate::stream::testee::Testee;
use crate::subject::{Endpoint, ServerProcess};

pub(super) struct Subject {
    pub(super) name: String,
    pub(super) endpoint: Endpoint,
    pub(super) processes: Vec<u32>,
    server: Server,
}

enum Server {
    Stranger,
    Process { _process: ServerProcess },
    Floor { _floors: Vec<Workers<Listening>> },
}

pub(super) fn stranger(plan: &Plan<'_>, address: &Address) -> Result<Subject, BenchError> {
    Ok(Subject {
        name: Address::of(&address.0),
        endpoint: plan.site.network.reach(&address.0)?,
        processes: plan.site.pids.clone(),
        server: Server::Stranger,
    })
}

pub(super) fn testee(plan: &Plan<'_>) -> Result<Subject, BenchError> {
    let testee = Testee {
        executable: &plan.site.executable,
        directory: plan.site.directory.path(),
        place: &plan.site.network.server_place(&plan.site.allowed),
        endpoint: Endpoint::Tcp(plan.site.network.free_server_address()?),
        mode: Mode::Echo,
        workers: plan.workers,
    };
    let (process, endpoint) = testee.start(&plan.site.network)?;
    Ok(Subject {
        name: "crosstie".to_owned(),
        endpoint,
        processes: process_tree(process.id()),
        server: Server::Process { _process: process },
    })
}

/// The same number of processes of the minimal epoll server, on one port.
pub(super) fn floor(plan: &Plan<'_>) -> Result<Subject, BenchError> {
    let mut order = FloorOrder {
        endpoint: Endpoint::Tcp(SocketAddr::new(plan.site.network.server_ip().into(), 0)),
        mode: Mode::Echo,
        waiting: Waiting::Epoll,
        shared_port: true,
    };
    let place = plan.site.network.server_place(&plan.site.allowed);
    let mut floors = Vec::new();
    let mut processes = Vec::new();
    for _ in 0..plan.workers {
        let mut floor = Workers::default();
        let (name, executable) = ("the floor's server", &plan.site.executable);
        // The first one chooses the port for all.
        order.endpoint = floor.start_server(name, executable, FLOOR, &place, &order)?;
        processes.extend(floor.processes());
        floors.push(floor);
    }
    Ok(Subject {
        name: "floor".to_owned(),
        endpoint: plan.site.network.reach(&order.endpoint)?,
        processes,
        server: Server::Floor { _floors: floors },
    })
}

impl Subject {
    /// The server, for the line before the progress.
    pub(super) fn describe(&self) -> String {
        match &self.server {
            Server::Stranger => format!("process(es) {:?}", self.processes),
            Server::Process { .. } => format!("testee, {} process(es)", self.processes.len()),
            Server::Floor { .. } => {
                format!("minimal epoll server, {} process(es)", self.processes.len())
            }
        }
    }
}
