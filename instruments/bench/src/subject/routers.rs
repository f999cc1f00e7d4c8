//! The routers of a run: ours or the one at a URL, and the peers. They stay up for the whole run and are moved to the
//! cores of each placement.

use crate::error::BenchError;
use crate::frame::{OWN, PeerState, Site, Testbed};
use crate::load::Stream;
use crate::machine::{Moved, bind_processes, process_tree};
use crate::network::Network;
use crate::peer::{Peer, StartedPeer};
use crate::subject::{Case, Router, RouterOptions, RoutersOptions, Target, Url};

#[derive(Debug)]
pub(crate) struct Reachable {
    pub name: String,
    pub target: Target,
    /// Empty if unknown.
    pub processes: Vec<u32>,
    /// Whether it is beside the main subject.
    pub is_peer: bool,
}

impl Reachable {
    fn of(router: &mut Router, name: &str, case: Case) -> Result<Self, BenchError> {
        BenchError::check_alive(name, router.process.is_alive())?;
        Ok(Self {
            name: name.to_owned(),
            target: router.listening.target(case),
            processes: vec![router.process.id()],
            is_peer: name != OWN,
        })
    }

    /// Moves it to `cores`; clients reach it through the network.
    fn moved(mut self, cores: &[usize], network: &Network) -> Result<Self, BenchError> {
        self.target.endpoint = network.reach(&self.target.endpoint)?;
        bind_processes(&self.processes, cores)?;
        Ok(self)
    }
}

impl Router {
    /// One of ours that takes turns beside the main subject.
    pub(crate) fn reachable(
        &mut self,
        name: &str,
        case: Case,
        cores: &[usize],
        network: &Network,
    ) -> Result<Reachable, BenchError> {
        Reachable::of(self, name, case)?.moved(cores, network)
    }
}

#[derive(Default)]
pub(crate) struct Routers {
    router: Option<Router>,
    foreign: Option<Foreign>,
    peers: Vec<(Peer, Option<StartedPeer>)>,
}

impl Routers {
    pub(crate) fn start(
        options: &RoutersOptions,
        own: &RouterOptions,
        site: &Site,
        cases: &[Case],
    ) -> Result<Self, BenchError> {
        let (network, directory) = (&site.network, site.directory.path());
        let (mut router, mut foreign) = (None, None);
        match &options.server.url {
            Some(url) => foreign = Some(Foreign::find(url, options, &site.pids)?),
            None => {
                let own = RouterOptions {
                    compresses: Case::any_deflated(cases),
                    ..own.clone()
                };
                router = Some(Router::start(&own, directory, network)?);
            }
        }
        let mut peers = Vec::new();
        for peer in &options.peers {
            let started = peer.start(cases, directory, &site.executable, network)?;
            peers.push((*peer, started));
        }
        Ok(Self {
            router,
            foreign,
            peers,
        })
    }

    /// Those that support a case, moved to `cores`, and their addresses; ours comes first.
    pub(crate) fn of(
        &mut self,
        case: Case,
        cores: &[usize],
        network: &Network,
    ) -> Result<Vec<Reachable>, BenchError> {
        let mut routers = Vec::new();
        if let Some(router) = &mut self.router {
            routers.push(Reachable::of(router, OWN, case)?);
        }
        if let Some(foreign) = &self.foreign {
            routers.push(Reachable {
                name: foreign.name(),
                target: foreign.url.target(case, &foreign.realm),
                processes: foreign.moved.processes().to_vec(),
                is_peer: false,
            });
        }
        for (peer, started) in &self.peers {
            let Some(started) = started else { continue };
            let target = started.targets.iter().find(|(of, _)| *of == case);
            let Some((_, target)) = target else { continue };
            routers.push(Reachable {
                name: peer.name().to_owned(),
                target: target.clone(),
                processes: process_tree(started.process.id()),
                is_peer: true,
            });
        }
        let moved = routers.into_iter().map(|one| one.moved(cores, network));
        moved.collect()
    }

    pub(crate) fn testbed(&self) -> Testbed {
        let peers = self.peers.iter().map(|(peer, started)| {
            let version = started.as_ref().map(|started| started.version.as_str());
            PeerState {
                name: peer.name(),
                is_present: started.is_some(),
                version,
                note: Some(peer.note(version)),
            }
        });
        let mut testbed = Testbed::of_peers(peers);
        let foreign = self.foreign.as_ref();
        if foreign.is_some_and(|foreign| foreign.moved.processes().is_empty()) {
            testbed.notes.push(
                "without --pid the router stays on the cores it has, and its processor \
                 time and memory are unknown"
                    .to_owned(),
            );
        }
        testbed
    }
}

/// A router that ran before the bench and goes on after it.
struct Foreign {
    url: Url,
    realm: String,
    moved: Moved,
}

impl Foreign {
    fn find(url: &Url, options: &RoutersOptions, pids: &[u32]) -> Result<Self, BenchError> {
        if let Err(error) = Stream::connect(&url.endpoint) {
            let why = format!("nothing listens at {} ({error})", url.endpoint);
            return Err(BenchError::Options(why));
        }
        Ok(Self {
            url: url.clone(),
            realm: options.realm.clone(),
            moved: Moved::find(pids, "--pid")?,
        })
    }

    fn name(&self) -> String {
        let scheme = if self.url.websocket { "ws" } else { "rs" };
        format!("{scheme} {}", self.url.endpoint)
    }
}
