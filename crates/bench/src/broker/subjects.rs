//! The brokers of a run: ours or the one at a URL, the floor, and the peers beside it. They stay
//! up for the whole run and are moved to the cores of each placement.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::floor::{FloorOrder, ROLE as FLOOR, Report as FloorReport};
use super::node::Node;
use super::{Broker, wire::Wire};
use crate::error::BenchError;
use crate::machine::placement::{Moved, allowed_cores, bind_processes};
use crate::network::Network;
use crate::peer::rabbitmq::{BrokerPeer, RabbitMq};
use crate::process::crew::Crew;
use crate::subject::target::Endpoint;

/// Which brokers a run is about.
pub(crate) struct Wanted<'a> {
    pub(crate) executable: &'a Path,
    /// For node directories and stores.
    pub(crate) directory: &'a Path,
    /// Somebody else's, in place of ours.
    pub(crate) url: Option<&'a Broker>,
    pub(crate) pids: &'a [u32],
    pub(crate) peers: &'a [BrokerPeer],
}

/// One of them, and how it is reached without a link.
#[derive(Clone, Debug)]
pub(crate) struct Subject {
    pub(crate) name: String,
    pub(crate) broker: Broker,
    /// Empty where nobody told which they are.
    pub(crate) processes: Vec<u32>,
}

/// All of them, running.
pub(crate) struct Brokers {
    own: Option<Node>,
    foreign: Option<Foreign>,
    floor: Broker,
    floor_crew: Crew<FloorReport>,
    peers: Vec<(BrokerPeer, Option<RabbitMq>)>,
}

/// One that was running before the bench and goes on after it.
struct Foreign {
    broker: Broker,
    version: String,
    moved: Moved,
}

/// The floor's name, as all benches have it.
pub(crate) const FLOOR_NAME: &str = "floor";

const PATIENCE: Duration = Duration::from_secs(10);

impl Brokers {
    pub(crate) fn start(wanted: &Wanted<'_>, network: &Network) -> Result<Self, BenchError> {
        let (directory, executable) = (wanted.directory, wanted.executable);
        let (mut own, mut foreign) = (None, None);
        match wanted.url {
            Some(broker) => foreign = Some(Foreign::find(broker, wanted.pids)?),
            None => own = Some(Node::start(directory, executable, network)?),
        }
        let mut floor_crew = Crew::default();
        let floor = start_floor(&mut floor_crew, executable, network)?;
        let mut peers = Vec::new();
        for peer in wanted.peers {
            let started = match peer {
                BrokerPeer::RabbitMq => RabbitMq::start(directory, executable, network)?,
            };
            peers.push((*peer, started));
        }
        Ok(Self {
            own,
            foreign,
            floor,
            floor_crew,
            peers,
        })
    }

    /// Moved to `cores`, in the order in which they take turns: the one that the run is about, the
    /// floor, the peers.
    pub(crate) fn on(&mut self, cores: &[usize]) -> Result<Vec<Subject>, BenchError> {
        let mut subjects = Vec::new();
        if let Some(node) = &mut self.own {
            check_alive("crosstie", node.is_alive())?;
            subjects.push(Subject {
                name: "crosstie".to_owned(),
                broker: node.broker.clone(),
                processes: node.processes(),
            });
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
            name: FLOOR_NAME.to_owned(),
            broker: self.floor.clone(),
            processes: self.floor_crew.processes(),
        });
        for (peer, started) in &mut self.peers {
            let Some(started) = started else { continue };
            check_alive(peer.name(), started.is_alive())?;
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

    /// What people must know about who takes part.
    pub(crate) fn notes(&self) -> Vec<String> {
        let foreign = self
            .foreign
            .iter()
            .map(|foreign| format!("{}: {}", foreign.broker, foreign.version));
        let peers = self.peers.iter().map(|(peer, started)| match started {
            Some(started) => format!("{peer}: {}, started by hand", started.version),
            None => format!("{peer}: absent. {}", peer.installation()),
        });
        foreign.chain(peers).collect()
    }

    /// The peers, as the settings in the JSON frame have them.
    pub(crate) fn peer_settings(&self) -> Value {
        let peers = self.peers.iter().map(|(peer, started)| {
            json!({
                "name": peer.name(),
                "version": started.as_ref().map(|started| started.version.as_str()),
                "present": started.is_some(),
            })
        });
        peers.collect()
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
            moved: Moved::find(pids, "--broker-pid")?,
        })
    }
}

fn check_alive(name: &str, is_alive: bool) -> Result<(), BenchError> {
    match is_alive {
        true => Ok(()),
        false => Err(BenchError::Server {
            name: name.to_owned(),
            why: "it ended while it was measured".to_owned(),
        }),
    }
}

fn start_floor(
    crew: &mut Crew<FloorReport>,
    executable: &Path,
    network: &Network,
) -> Result<Broker, BenchError> {
    let order = FloorOrder {
        address: network.free_server_address()?,
    };
    let place = network.server_place(&allowed_cores()?);
    crew.hire(executable, FLOOR, &place, &order)?;
    let why = match crew.next(Instant::now() + PATIENCE) {
        Some((
            _,
            FloorReport::Ready {
                endpoint: Endpoint::Tcp(address),
            },
        )) => {
            return Ok(Broker::own(address));
        }
        Some((_, FloorReport::Failed { why })) => why,
        other => format!("{other:?} where it should listen"),
    };
    let name = "the floor's broker".to_owned();
    Err(BenchError::Server { name, why })
}
