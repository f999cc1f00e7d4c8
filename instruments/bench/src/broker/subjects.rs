//! The brokers of a run: ours or the one at a URL, the floor, and the peers. They stay up for the whole run and are
//! moved to the cores of each placement.

use std::path::{Path, PathBuf};

use super::floor::{FloorOrder, ROLE as FLOOR};
use super::node::Node;
use super::replicated::Replicated;
use super::{Broker, wire::Wire};
use crate::error::BenchError;
use crate::frame::{PeerState, Server, ServerOptions, Site, Testbed, instrument, section};
use crate::machine::{Moved, allowed_cores, bind_processes};
use crate::network::Network;
use crate::peer::nats;
use crate::peer::rabbitmq::{BrokerPeer, RabbitMq};
use crate::process::{Listening, Workers};

/// The options of every instrument of brokers.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct BrokersOptions {
    #[command(flatten)]
    pub(crate) server: ServerOptions<Broker>,
    /// rabbitmq: start Debian's server and measure it in the same rounds.
    #[arg(long = "peer", value_name = "PEER")]
    peers: Vec<BrokerPeer>,
}

impl Server for Broker {
    const WHAT: &'static str = "broker instead of ours: rabbit://USER:PASSWORD@HOST:PORT/VHOST";
}

/// One of them, and its address without a delay line.
#[derive(Clone, Debug)]
pub(crate) struct Subject {
    pub(crate) name: String,
    pub(crate) broker: Broker,
    /// Empty if unknown.
    pub(crate) processes: Vec<u32>,
}

impl instrument::Subject for Subject {
    fn name(&self) -> &str {
        &self.name
    }
}

/// The number of nodes that store a broker's messages.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Copies<'a> {
    One,
    /// With this program of the NATS server, for ours.
    Three(Option<&'a PathBuf>),
}

pub(crate) struct Brokers {
    own: Option<Own>,
    foreign: Option<Foreign>,
    floor: Broker,
    floor_process: Workers<Listening>,
    peers: Vec<(BrokerPeer, Option<RabbitMq>)>,
}

enum Own {
    Node(Node),
    Replicated(Replicated),
}

/// One that ran before the bench and goes on after it.
struct Foreign {
    broker: Broker,
    version: String,
    moved: Moved,
}

impl Brokers {
    /// Ours or the one at a URL, the floor, and peers.
    pub(crate) fn start(
        site: &Site,
        options: &BrokersOptions,
        copies: Copies<'_>,
    ) -> Result<Self, BenchError> {
        let (directory, executable) = (site.directory.path(), &*site.executable);
        let network = &site.network;
        let (mut own, mut foreign) = (None, None);
        match &options.server.url {
            Some(broker) => foreign = Some(Foreign::find(broker, &site.pids)?),
            None => own = Some(Own::start(site, copies)?),
        }
        let mut floor_process = Workers::default();
        let floor = start_floor(&mut floor_process, executable, network)?;
        let mut peers = Vec::new();
        for peer in &options.peers {
            let started = match peer {
                BrokerPeer::RabbitMq => {
                    RabbitMq::start(directory, executable, network, copies.count())?
                }
            };
            peers.push((*peer, started));
        }
        Ok(Self {
            own,
            foreign,
            floor,
            floor_process,
            peers,
        })
    }

    /// Moved to `cores`, in the order of their turns: the main subject, the floor, the peers.
    pub(crate) fn on(&mut self, cores: &[usize]) -> Result<Vec<Subject>, BenchError> {
        let mut subjects = Vec::new();
        if let Some(own) = &mut self.own {
            subjects.push(own.subject()?);
        }
        if let Some(foreign) = &self.foreign {
            foreign.moved.bind(cores)?;
            subjects.push(Subject {
                name: foreign.broker.to_string(),
                broker: foreign.broker.clone(),
                processes: foreign.moved.processes().to_vec(),
            });
        }
        subjects.push(Subject {
            name: section::FLOOR.to_owned(),
            broker: self.floor.clone(),
            processes: self.floor_process.processes(),
        });
        for (peer, started) in &mut self.peers {
            let Some(started) = started else { continue };
            BenchError::check_alive(peer.name(), started.is_alive())?;
            subjects.push(Subject {
                name: peer.name().to_owned(),
                broker: started.broker.clone(),
                processes: started.processes(),
            });
        }
        for subject in &subjects {
            bind_processes(&subject.processes, cores)?;
        }
        Ok(subjects)
    }
}

impl Brokers {
    pub(crate) fn testbed(&self) -> Testbed {
        let peers = self.peers.iter().map(|(peer, started)| PeerState {
            name: peer.name(),
            is_present: started.is_some(),
            version: started.as_ref().map(|started| started.version.as_str()),
            note: Some(match started {
                Some(started) => format!("{peer}: {}, started by hand", started.version),
                None => format!("{peer}: absent. {}", peer.installation()),
            }),
        });
        let mut testbed = Testbed::of_peers(peers);
        if let Some(foreign) = &self.foreign {
            let note = format!("{}: {}", foreign.broker, foreign.version);
            testbed.notes.insert(0, note);
        }
        testbed
    }
}

impl Copies<'_> {
    fn count(self) -> usize {
        match self {
            Self::One => 1,
            Self::Three(_) => 3,
        }
    }
}

impl Own {
    fn start(site: &Site, copies: Copies<'_>) -> Result<Self, BenchError> {
        let (directory, executable) = (site.directory.path(), &*site.executable);
        let network = &site.network;
        Ok(match copies {
            Copies::One => Self::Node(Node::start(directory, executable, network)?),
            Copies::Three(named) => {
                let program = nats::program(named)?;
                let own = Replicated::start(directory, executable, network, &program)?;
                Self::Replicated(own)
            }
        })
    }

    fn subject(&mut self) -> Result<Subject, BenchError> {
        let (is_alive, broker, processes) = match self {
            Self::Node(node) => (node.is_alive(), &node.broker, node.processes()),
            Self::Replicated(own) => (own.is_alive(), &own.broker, own.processes()),
        };
        BenchError::check_alive(section::OWN, is_alive)?;
        Ok(Subject {
            name: section::OWN.to_owned(),
            broker: broker.clone(),
            processes,
        })
    }
}

impl Foreign {
    fn find(broker: &Broker, pids: &[u32]) -> Result<Self, BenchError> {
        let wire = Wire::open(broker, "crosstie bench")
            .map_err(|error| BenchError::Options(format!("--url: {error}")))?;
        let version = wire.server().to_owned();
        let _ = wire.close();
        Ok(Self {
            broker: broker.clone(),
            version,
            moved: Moved::find(pids, "--pid")?,
        })
    }
}

fn start_floor(
    floor: &mut Workers<Listening>,
    executable: &Path,
    network: &Network,
) -> Result<Broker, BenchError> {
    let address = network.free_server_address()?;
    let place = network.server_place(&allowed_cores()?);
    let order = FloorOrder { address };
    floor.start_server("the floor's broker", executable, FLOOR, &place, &order)?;
    Ok(Broker::own(address))
}
