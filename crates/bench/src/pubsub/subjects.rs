//! Who is measured: the routers, and the floor beside them.

use std::time::{Duration, Instant};

use super::Bench;
use super::hub::{Hub, Lengths};
use super::relay::RelayOrder;
use super::worker::{Order, ROLE, Report};
use crate::error::BenchError;
use crate::machine::placement::Cores;
use crate::process::crew::Crew;
use crate::subject::case::{Case, Socket};
use crate::subject::router::RouterOptions;
use crate::subject::routers::{Routers, Wanted};
use crate::subject::target::Endpoint;

/// One of them in one case.
pub(super) struct Subject {
    pub(super) name: String,
    pub(super) hub: Hub,
    /// Empty where nobody told which they are.
    pub(super) processes: Vec<u32>,
    /// The floor's own process ends with this.
    _relay: Option<Crew<Report>>,
}

/// The name of every floor.
pub(super) const FLOOR: &str = "floor";

/// Everything that is measured, running.
pub(super) struct Subjects {
    pub(super) routers: Routers,
    /// So that every stage has a topic of its own.
    stages: usize,
}

impl Subjects {
    pub(super) fn start(bench: &Bench) -> Result<Self, BenchError> {
        let options = &bench.options;
        let wanted = Wanted {
            router: RouterOptions {
                executable: bench.executable.clone(),
                threads: options.router_threads,
                spin: false,
            },
            url: options.url.as_ref(),
            pids: &options.router_pids,
            realm: &options.realm,
            peers: &options.peers,
            cases: &bench.cases,
            directory: bench.directory.path(),
        };
        Ok(Self {
            routers: Routers::start(&wanted, &bench.network)?,
            stages: 0,
        })
    }

    /// The subjects of a case, moved to their cores; the router comes first, the floor after it.
    pub(super) fn of(
        &mut self,
        bench: &Bench,
        case: Case,
        cores: &Cores,
        payload_bytes: usize,
    ) -> Result<Vec<Subject>, BenchError> {
        self.stages += 1;
        let topic = bench.options.topic.clone().unwrap_or_else(|| {
            // Always of the same length, so that every stage has the same bytes on the wire.
            let process = std::process::id();
            format!("crosstie.bench.p{process:07}.t{:03}", self.stages)
        });
        let routers = self.routers.of(case, &cores.router, &bench.network)?;
        let mut subjects: Vec<Subject> = routers
            .into_iter()
            .map(|router| Subject {
                name: router.name,
                hub: Hub::Router {
                    target: router.target,
                    topic: topic.clone(),
                },
                processes: router.processes,
                _relay: None,
            })
            .collect();
        if bench.options.floor {
            let lengths = Lengths::of(&case, &topic, payload_bytes)?;
            let floor = floor(bench, case, cores, lengths, self.stages)?;
            subjects.insert(1, floor);
        }
        Ok(subjects)
    }
}

fn floor(
    bench: &Bench,
    case: Case,
    cores: &Cores,
    lengths: Lengths,
    stage: usize,
) -> Result<Subject, BenchError> {
    let endpoint = match case.socket {
        Socket::Unix => Endpoint::Unix(bench.directory.path().join(format!("floor-{stage}.sock"))),
        Socket::Tcp => Endpoint::Tcp((bench.network.server_ip(), 0).into()),
    };
    let order = Order::Relay(RelayOrder { endpoint, lengths });
    let place = bench.network.server_place(&cores.router);
    let mut crew = Crew::default();
    crew.hire(&bench.executable, ROLE, &place, &order)?;
    let endpoint = match crew.next(Instant::now() + Duration::from_secs(10)) {
        Some((_, Report::Listening { endpoint })) => endpoint,
        other => {
            return Err(BenchError::Server {
                name: "the floor's relay".to_owned(),
                why: format!("{other:?}"),
            });
        }
    };
    Ok(Subject {
        name: FLOOR.to_owned(),
        hub: Hub::Floor {
            endpoint: bench.network.reach(&endpoint)?,
            lengths,
        },
        processes: crew.processes(),
        _relay: Some(crew),
    })
}
