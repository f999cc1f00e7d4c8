//! Who is measured: our own router or the one at a URL, the floor, and the peers beside them.
//! Routers stay up for the whole run and are moved to the cores of each placement.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::Bench;
use super::hub::{Hub, Lengths};
use super::relay::RelayOrder;
use super::worker::{Order, ROLE, Report};
use crate::accounting::process_tree;
use crate::case::{Case, Socket};
use crate::crew::Crew;
use crate::error::BenchError;
use crate::peer::{Peer, StartedPeer};
use crate::placement::{Cores, affinity, bind_processes};
use crate::router::{Router, RouterOptions};
use crate::socket::Stream;
use crate::target::{Endpoint, Target, Url};

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
    router: Option<Router>,
    foreign: Option<Foreign>,
    peers: Vec<(Peer, Option<StartedPeer>)>,
    /// So that every stage has a topic of its own.
    stages: usize,
}

impl Subjects {
    pub(super) fn start(bench: &Bench) -> Result<Self, BenchError> {
        let options = &bench.options;
        let directory = bench.directory.path();
        let (mut router, mut foreign) = (None, None);
        if let Some(url) = &options.url {
            foreign = Some(Foreign::find(bench, url.clone())?);
        } else {
            let options = RouterOptions {
                executable: bench.executable.clone(),
                threads: options.router_threads,
                spin: false,
            };
            router = Some(Router::start(&options, directory, &bench.network)?);
        }
        let mut peers = Vec::new();
        for peer in &options.peers {
            let executable = &bench.executable;
            let started = peer.start(&bench.cases, directory, executable, &bench.network)?;
            peers.push((*peer, started));
        }
        Ok(Self {
            router,
            foreign,
            peers,
            stages: 0,
        })
    }

    /// The subjects of a case, moved to their cores; the router comes first, the floor after it.
    pub(super) fn of(
        &mut self,
        bench: &Bench,
        case: Case,
        cores: &Cores,
        payload_octets: usize,
    ) -> Result<Vec<Subject>, BenchError> {
        self.stages += 1;
        let topic = bench.options.topic.clone().unwrap_or_else(|| {
            // Always of the same length, so that every stage has the same octets on the wire.
            let process = std::process::id();
            format!("crosstie.bench.p{process:07}.t{:03}", self.stages)
        });
        let mut subjects = Vec::new();
        if let Some(router) = &mut self.router {
            if !router.process.is_alive() {
                return Err(BenchError::Server {
                    name: "crosstie".to_owned(),
                    why: "it ended while it was measured".to_owned(),
                });
            }
            subjects.push(Subject {
                name: "crosstie".to_owned(),
                hub: hub(bench, router.listening.target(case), &topic)?,
                processes: vec![router.process.id()],
                _relay: None,
            });
        }
        if let Some(foreign) = &self.foreign {
            subjects.push(Subject {
                name: foreign.name(),
                hub: hub(bench, foreign.url.target(case, &foreign.realm), &topic)?,
                processes: foreign.processes(),
                _relay: None,
            });
        }
        if bench.options.floor {
            let lengths = Lengths::of(&case, &topic, payload_octets)?;
            subjects.push(floor(bench, case, cores, lengths, self.stages)?);
        }
        for (peer, started) in &self.peers {
            let Some(started) = started else { continue };
            let target = started.targets.iter().find(|(of, _)| *of == case);
            let Some((_, target)) = target else { continue };
            subjects.push(Subject {
                name: peer.name().to_owned(),
                hub: hub(bench, target.clone(), &topic)?,
                processes: process_tree(started.process.id()),
                _relay: None,
            });
        }
        for subject in &subjects {
            bind_processes(&subject.processes, &cores.router)?;
        }
        Ok(subjects)
    }

    /// What the reader must know before the figures.
    pub(super) fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        for (peer, started) in &self.peers {
            notes.push(match started {
                Some(started) => format!("{peer}: {}", started.version),
                None => format!(
                    "{peer}: absent from PATH; to get it: {}",
                    peer.installation()
                ),
            });
        }
        if self
            .foreign
            .as_ref()
            .is_some_and(|foreign| foreign.affinities.is_empty())
        {
            notes.push(
                "without --router-pid the router stays on the cores it has, and its processor \
                 time and memory are unknown"
                    .to_owned(),
            );
        }
        notes
    }

    pub(super) fn peer_settings(&self) -> Value {
        self.peers
            .iter()
            .map(|(peer, started)| {
                json!({
                    "name": peer.name(),
                    "version": started.as_ref().map(|started| started.version.as_str()),
                    "present": started.is_some(),
                })
            })
            .collect()
    }
}

fn hub(bench: &Bench, mut target: Target, topic: &str) -> Result<Hub, BenchError> {
    target.endpoint = bench.network.reach(&target.endpoint)?;
    Ok(Hub::Router {
        target,
        topic: topic.to_owned(),
    })
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

/// A router that was running before the bench and goes on after it.
struct Foreign {
    url: Url,
    realm: String,
    /// Its processes and the cores that each had before.
    affinities: Vec<(u32, Vec<usize>)>,
}

impl Foreign {
    fn find(bench: &Bench, url: Url) -> Result<Self, BenchError> {
        if let Err(error) = Stream::connect(&url.endpoint) {
            let why = format!("nobody listens at {} ({error})", url.endpoint);
            return Err(BenchError::Options(format!("--wsuri: {why}")));
        }
        let mut affinities = Vec::new();
        for process in &bench.options.router_pids {
            let cores = affinity(*process)
                .map_err(|error| BenchError::Options(format!("--router-pid {process}: {error}")))?;
            affinities.push((*process, cores));
        }
        Ok(Self {
            url,
            realm: bench.options.realm.clone(),
            affinities,
        })
    }

    fn name(&self) -> String {
        let scheme = if self.url.websocket { "ws" } else { "rs" };
        format!("{scheme} {}", self.url.endpoint)
    }

    fn processes(&self) -> Vec<u32> {
        self.affinities
            .iter()
            .map(|(process, _)| *process)
            .collect()
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        for (process, cores) in &self.affinities {
            // It may have ended meanwhile; then there is nothing to give back.
            let _ = bind_processes(&[*process], cores);
        }
    }
}
