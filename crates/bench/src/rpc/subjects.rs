//! The routers of a run: ours or the one at a URL, and the peers beside it. They stay up for the
//! whole run and are moved to the cores of each placement.

use serde_json::{Value, json};

use super::worker::{LoadOrder, Role};
use super::{Bench, RpcOptions};
use crate::accounting::process_tree;
use crate::caller::PairOrder;
use crate::case::Case;
use crate::error::BenchError;
use crate::peer::{Peer, StartedPeer};
use crate::placement::{Cores, affinity, bind_processes};
use crate::round::Ends;
use crate::router::{Router, RouterOptions};
use crate::socket::Stream;
use crate::target::Target;

/// One router in one case.
#[derive(Debug)]
pub(super) struct Subject {
    pub(super) name: String,
    pub(super) target: Target,
    /// Empty where nobody told which they are.
    pub(super) processes: Vec<u32>,
    /// Whether its batches are printed in the document's form.
    pub(super) shows_lines: bool,
}

impl Subject {
    /// The pairs of one round, with procedures that no earlier round has used.
    pub(super) fn ends(&self, options: &RpcOptions, round: usize) -> Vec<Ends> {
        let load = LoadOrder {
            outstanding: options.outstanding,
            batch: options.batch,
        };
        (0..options.pairs)
            .map(|pair| {
                let order = PairOrder {
                    target: self.target.clone(),
                    procedure: procedure(round, pair),
                    payload_octets: options.payload_octets,
                };
                Ends {
                    callee: Role::Callee(order.clone()),
                    caller: Role::Caller(order, load),
                }
            })
            .collect()
    }
}

/// A name that differs by bench process, round and pair, and always has the same length.
pub(super) fn procedure(round: usize, pair: usize) -> String {
    format!(
        "crosstie.bench.p{:07}.r{round:03}.c{pair:03}",
        std::process::id()
    )
}

/// Everything that is measured, running.
pub(super) struct Subjects {
    router: Option<Router>,
    foreign: Option<Foreign>,
    peers: Vec<(Peer, Option<StartedPeer>)>,
}

impl Subjects {
    pub(super) fn start(bench: &Bench) -> Result<Self, BenchError> {
        let options = &bench.options;
        let directory = bench.directory.path();
        let mut peers = Vec::new();
        for peer in &options.peers {
            let executable = &bench.executable;
            let started = peer.start(&bench.cases, directory, executable, &bench.network)?;
            peers.push((*peer, started));
        }
        let (mut router, mut foreign) = (None, None);
        if let Some(url) = &options.url {
            foreign = Some(Foreign::find(options, url.clone())?);
        } else {
            let options = RouterOptions {
                executable: bench.executable.clone(),
                threads: options.router_threads,
                spin: options.spin,
            };
            router = Some(Router::start(&options, directory, &bench.network)?);
        }
        Ok(Self {
            router,
            foreign,
            peers,
        })
    }

    /// The subjects of a case, moved to their cores, and how they are reached; the router comes
    /// first.
    pub(super) fn of(
        &mut self,
        bench: &Bench,
        case: Case,
        cores: &Cores,
    ) -> Result<Vec<Subject>, BenchError> {
        let mut subjects = Vec::new();
        if let Some(router) = &mut self.router {
            if !router.process.is_alive() {
                let why = "it ended while it was measured".to_owned();
                return Err(BenchError::Server {
                    name: "crosstie".to_owned(),
                    why,
                });
            }
            subjects.push(Subject {
                name: "crosstie".to_owned(),
                target: router.listening.target(case),
                processes: vec![router.process.id()],
                shows_lines: true,
            });
        }
        if let Some(foreign) = &self.foreign {
            subjects.push(Subject {
                name: foreign.name(),
                target: foreign.url.target(case, &foreign.realm),
                processes: foreign.processes(),
                shows_lines: true,
            });
        }
        for (peer, started) in &self.peers {
            let Some(started) = started else { continue };
            let target = started.targets.iter().find(|(of, _)| *of == case);
            let Some((_, target)) = target else { continue };
            subjects.push(Subject {
                name: peer.name().to_owned(),
                target: target.clone(),
                processes: process_tree(started.process.id()),
                shows_lines: false,
            });
        }
        for subject in &mut subjects {
            subject.target.endpoint = bench.network.reach(&subject.target.endpoint)?;
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

    /// The peers that were asked for and are not here.
    pub(super) fn absent(&self) -> impl Iterator<Item = Peer> {
        self.peers
            .iter()
            .filter(|(_, started)| started.is_none())
            .map(|(peer, _)| *peer)
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

/// A router that was running before the bench and goes on after it.
struct Foreign {
    url: crate::target::Url,
    realm: String,
    /// Its processes and the cores that each had before.
    affinities: Vec<(u32, Vec<usize>)>,
}

impl Foreign {
    fn find(options: &RpcOptions, url: crate::target::Url) -> Result<Self, BenchError> {
        if let Err(error) = Stream::connect(&url.endpoint) {
            let why = format!("nobody listens at {} ({error})", url.endpoint);
            return Err(BenchError::Options(format!("--url: {why}")));
        }
        let mut affinities = Vec::new();
        for process in &options.router_pids {
            let cores = affinity(*process)
                .map_err(|error| BenchError::Options(format!("--router-pid {process}: {error}")))?;
            affinities.push((*process, cores));
        }
        Ok(Self {
            url,
            realm: options.realm.clone(),
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
