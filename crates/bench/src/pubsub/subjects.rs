//! Who is measured: the routers, and the floor beside them.

use super::options::PubSubOptions;
use super::relay::RelayOrder;
use super::server::{Lengths, Server};
use super::worker::{Order, ROLE};
use crate::error::BenchError;
use crate::frame::{FLOOR, Site, Stage};
use crate::process::{Listening, Workers};
use crate::subject::{Case, Endpoint, Routers, Socket};

pub(super) struct Subject {
    pub(super) name: String,
    pub(super) server: Server,
    /// Empty where nobody told which they are.
    pub(super) processes: Vec<u32>,
    /// The floor's own process ends with this.
    _relay: Option<Workers<Listening>>,
}

/// Everything that is measured, running.
#[derive(Default)]
pub(super) struct Subjects {
    pub(super) routers: Routers,
    /// So that every stage has a topic of its own.
    stages: usize,
}

impl Subjects {
    pub(super) fn start(options: &PubSubOptions, site: &Site) -> Result<Self, BenchError> {
        let own = options.routers.own(site, false);
        let cases = options.definite_cases()?;
        Ok(Self {
            routers: Routers::start(&options.routers, &own, site, &cases)?,
            stages: 0,
        })
    }

    /// The subjects of a case, moved to their cores; the router comes first, the floor after it.
    pub(super) fn of(
        &mut self,
        options: &PubSubOptions,
        stage: &Stage<'_>,
        case: Case,
        payload_bytes: usize,
    ) -> Result<Vec<Subject>, BenchError> {
        self.stages += 1;
        let topic = options.topic.clone().unwrap_or_else(|| {
            // Always of the same length, so that every stage has the same bytes on the wire.
            let process = std::process::id();
            format!("crosstie.bench.p{process:07}.t{:03}", self.stages)
        });
        let routers = self
            .routers
            .of(case, &stage.cores.router, &stage.site.network)?;
        let mut subjects: Vec<Subject> = routers
            .into_iter()
            .map(|router| Subject {
                name: router.name,
                server: Server::Router {
                    target: router.target,
                    topic: topic.clone(),
                },
                processes: router.processes,
                _relay: None,
            })
            .collect();
        if !options.no_floor {
            let lengths = Lengths::of(&case, &topic, payload_bytes)?;
            let floor = floor(stage, case, lengths, self.stages)?;
            subjects.insert(1, floor);
        }
        Ok(subjects)
    }
}

fn floor(
    stage: &Stage<'_>,
    case: Case,
    lengths: Lengths,
    number: usize,
) -> Result<Subject, BenchError> {
    let site = stage.site;
    let endpoint = match case.socket {
        Socket::Unix => Endpoint::Unix(site.directory.path().join(format!("floor-{number}.sock"))),
        Socket::Tcp => Endpoint::Tcp((site.network.server_ip(), 0).into()),
    };
    let order = Order::Relay(RelayOrder { endpoint, lengths });
    let mut relay = Workers::default();
    let name = "the floor's relay";
    let endpoint = relay.start_server(name, &site.executable, ROLE, &stage.servers(), &order)?;
    Ok(Subject {
        name: FLOOR.to_owned(),
        server: Server::Floor {
            endpoint: site.network.reach(&endpoint)?,
            lengths,
        },
        processes: relay.processes(),
        _relay: Some(relay),
    })
}
