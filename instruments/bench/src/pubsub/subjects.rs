//! The subjects: the routers, and the floor beside them.

use super::options::PubSubOptions;
use super::relay::RelayOrder;
use super::server::{Lengths, Server};
use super::spread::{self, Spread};
use super::worker::{Order, ROLE};
use crate::error::BenchError;
use crate::frame::{FLOOR, Site, Stage};
use crate::peer::nats;
use crate::process::{Listening, Workers};
use crate::subject::{Case, Endpoint, Routers, Socket, Target};

pub(super) struct Subject {
    pub(super) name: String,
    pub(super) server: Server,
    /// The subscribers' servers, in turn.
    pub(super) subscribed: Vec<Server>,
    /// Empty if unknown.
    pub(super) processes: Vec<u32>,
    /// The floor's own process ends with this.
    _relay: Option<Workers<Listening>>,
}

impl Subject {
    /// The publisher is at the first of these.
    fn of(name: String, targets: Vec<Target>, topic: &str, processes: Vec<u32>) -> Self {
        let server = |target| Server::Router {
            target,
            topic: topic.to_owned(),
        };
        let subscribed: Vec<Server> = targets.into_iter().map(server).collect();
        Self {
            name,
            server: subscribed[0].clone(),
            subscribed,
            processes,
            _relay: None,
        }
    }
}

/// All subjects, running.
#[derive(Default)]
pub(super) struct Subjects {
    pub(super) routers: Routers,
    spread: Vec<Spread>,
    /// So that every stage has a topic of its own.
    stages: usize,
}

impl Subjects {
    pub(super) fn start(options: &PubSubOptions, site: &Site) -> Result<Self, BenchError> {
        let own = options.routers.own(site, false);
        let cases = options.definite_cases()?;
        let mut spread = Vec::new();
        if !options.nodes.is_empty() {
            let program = nats::program(options.nats_server.as_ref())?;
            for nodes in &options.nodes {
                let threads = options.routers.threads;
                spread.push(Spread::start(site, *nodes, threads, &program)?);
            }
        }
        Ok(Self {
            routers: Routers::start(&options.routers, &own, site, &cases)?,
            spread,
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
            .map(|router| Subject::of(router.name, vec![router.target], &topic, router.processes))
            .collect();
        for (spread, nodes) in self.spread.iter().zip(&options.nodes) {
            let (targets, processes) = spread.on(stage, case)?;
            subjects.push(Subject::of(
                spread::name(*nodes),
                targets,
                &topic,
                processes,
            ));
        }
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
    let server = Server::Floor {
        endpoint: site.network.reach(&endpoint)?,
        lengths,
    };
    Ok(Subject {
        name: FLOOR.to_owned(),
        subscribed: vec![server.clone()],
        server,
        processes: relay.processes(),
        _relay: Some(relay),
    })
}
