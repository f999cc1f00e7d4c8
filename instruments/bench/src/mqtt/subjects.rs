//! The brokers of a run: ours or the one at a URL, the floor, and the peers. They stay up for the whole run and are
//! moved to the cores of each placement. For the memory of idle clients each round has a fresh one.

use std::path::Path;
use std::time::Duration;

use super::case::{Case, Kind};
use super::floor::{FloorOrder, ROLE as FLOOR};
use super::node;
use super::order::version;
use super::tls::Certificate;
use super::url::Broker;
use super::wire::{Dial, Session};
use crate::broker::url::ACCOUNT;
use crate::error::BenchError;
use crate::frame::{OWN, PeerState, ServerOptions, Site, Testbed, instrument, section};
use crate::machine::{Moved, bind_processes, process_tree};
use crate::peer::rabbitmq::RabbitMq;
use crate::peer::{mochi, mosquitto};
use crate::process::{Listening, Workers};
use crate::subject::{Endpoint, ServerProcess, guarded, names};

/// The options of the brokers.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct BrokersOptions {
    #[command(flatten)]
    pub(super) server: ServerOptions<Broker>,
    /// mosquitto, rabbitmq (with its MQTT plug-in, by 3.1.1) or mochi: start Debian's server, or `mochi` on PATH, and measure
    /// it in the same rounds; may be repeated.
    #[arg(long = "peer", value_name = "PEER")]
    pub(super) peers: Vec<MqttPeer>,
}

/// A broker that the bench can start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MqttPeer {
    Mosquitto,
    Mochi,
    RabbitMq,
}

names! {
    MqttPeer { Mosquitto = "mosquitto", Mochi = "mochi", RabbitMq = "rabbitmq" }
    "the peers that can be started are mochi, mosquitto and rabbitmq"
}

/// One of them, and its addresses without a delay line.
#[derive(Clone, Debug)]
pub(super) struct Subject {
    pub(super) name: String,
    pub(super) plain: Option<Broker>,
    pub(super) tls: Option<Broker>,
    /// Empty if unknown.
    pub(super) processes: Vec<u32>,
}

impl instrument::Subject for Subject {
    fn name(&self) -> &str {
        &self.name
    }
}

pub(super) struct Brokers {
    certificate: Certificate,
    own: Option<Fresh>,
    foreign: Option<(Broker, Moved)>,
    floor: Broker,
    floor_process: Workers<Listening>,
    mosquitto: Option<Fresh>,
    mochi: Option<Fresh>,
    rabbitmq: Option<RabbitMq>,
    peers: Vec<(MqttPeer, Option<String>)>,
}

/// A broker that takes a moment to start.
pub(super) struct Fresh {
    process: ServerProcess,
    pub(super) subject: Subject,
}

const PATIENCE: Duration = Duration::from_secs(20);
const RABBITMQ: &str = "apt-get install rabbitmq-server";

impl Brokers {
    pub(super) fn start(site: &Site, options: &BrokersOptions) -> Result<Self, BenchError> {
        let certificate = Certificate::make(site.directory.path())?;
        let (mut own, mut foreign) = (None, None);
        match &options.server.url {
            Some(broker) => foreign = Some((find(broker)?, Moved::find(&site.pids, "--pid")?)),
            None => own = Some(Fresh::own(site, OWN, &certificate)?),
        }
        let mut floor_process = Workers::default();
        let floor = start_floor(&mut floor_process, site)?;
        let mut brokers = Self {
            certificate,
            own,
            foreign,
            floor,
            floor_process,
            mosquitto: None,
            mochi: None,
            rabbitmq: None,
            peers: Vec::new(),
        };
        for peer in &options.peers {
            let version = brokers.start_peer(site, *peer)?;
            brokers.peers.push((*peer, version));
        }
        Ok(brokers)
    }

    /// Returns its version, if it is installed.
    fn start_peer(&mut self, site: &Site, peer: MqttPeer) -> Result<Option<String>, BenchError> {
        match peer {
            MqttPeer::Mosquitto => {
                let Some(program) = mosquitto::find() else {
                    return Ok(None);
                };
                let started = Fresh::mosquitto(site, peer.name(), &program, &self.certificate)?;
                self.mosquitto = Some(started);
                Ok(Some(mosquitto::version(&program)))
            }
            MqttPeer::Mochi => {
                let Some(program) = mochi::find() else {
                    return Ok(None);
                };
                self.mochi = Some(Fresh::mochi(site, peer.name(), &program)?);
                Ok(Some(mochi::version(&program)))
            }
            MqttPeer::RabbitMq => {
                let directory = site.directory.path();
                let (executable, network) = (&site.executable, &site.network);
                self.rabbitmq = RabbitMq::start_with_mqtt(directory, executable, network)?;
                Ok(self
                    .rabbitmq
                    .as_ref()
                    .map(|started| started.version.clone()))
            }
        }
    }

    /// Those that support the case, moved to `cores`: the main subject, the floor, the peers.
    pub(super) fn on(&mut self, cores: &[usize], case: Case) -> Result<Vec<Subject>, BenchError> {
        let mut subjects = Vec::new();
        if let Some(own) = &mut self.own {
            subjects.push(own.alive()?);
        }
        if let Some((broker, moved)) = &self.foreign {
            subjects.push(Subject {
                name: broker.to_string(),
                plain: (!broker.is_tls).then(|| broker.clone()),
                tls: broker.is_tls.then(|| broker.clone()),
                processes: moved.processes().to_vec(),
            });
        }
        if case.has_floor() {
            subjects.push(Subject {
                name: section::FLOOR.to_owned(),
                plain: Some(self.floor.clone()),
                tls: None,
                processes: self.floor_process.processes(),
            });
        }
        for peer in [&mut self.mosquitto, &mut self.mochi].into_iter().flatten() {
            subjects.push(peer.alive()?);
        }
        // Its plug-in has QoS 1 at most, and it takes seconds to start for a round of its own.
        let is_for_rabbitmq = case.qos() < 2 && case.kind() != Kind::Memory;
        if let Some(rabbitmq) = self.rabbitmq.as_mut().filter(|_| is_for_rabbitmq) {
            let name = MqttPeer::RabbitMq.name();
            BenchError::check_alive(name, rabbitmq.is_alive())?;
            let broker = rabbitmq.mqtt.map(Broker::own);
            subjects.push(Subject {
                name: name.to_owned(),
                plain: broker.map(|broker| broker.with_account(ACCOUNT)),
                tls: None,
                processes: rabbitmq.processes(),
            });
        }
        subjects.retain(|subject| subject.broker(case).is_some());
        for subject in &subjects {
            bind_processes(&subject.processes, cores)?;
        }
        Ok(subjects)
    }

    /// The same once more, freshly started: memory that was returned would be used again. `None` for one that the bench
    /// does not start.
    pub(super) fn another(
        &self,
        site: &Site,
        of: &Subject,
        at: usize,
    ) -> Result<Option<Fresh>, BenchError> {
        let name = format!("{}-idle-{at}", of.name);
        let is_mosquitto = of.name == MqttPeer::Mosquitto.name();
        let is_mochi = of.name == MqttPeer::Mochi.name();
        let mosquitto = mosquitto::find().filter(|_| is_mosquitto);
        match (mosquitto, mochi::find().filter(|_| is_mochi)) {
            _ if of.name == OWN => Fresh::own(site, &name, &self.certificate).map(Some),
            (Some(program), _) => {
                Fresh::mosquitto(site, &name, &program, &self.certificate).map(Some)
            }
            (_, Some(program)) => Fresh::mochi(site, &name, &program).map(Some),
            _ => Ok(None),
        }
    }

    pub(super) fn testbed(&self) -> Testbed {
        let peers = self.peers.iter().map(|(peer, version)| PeerState {
            name: peer.name(),
            is_present: version.is_some(),
            version: version.as_deref(),
            note: Some(match version {
                Some(version) => format!("{peer}: {version}, started by hand"),
                None => format!("{peer}: absent. {}", peer.installation()),
            }),
        });
        let mut testbed = Testbed::of_peers(peers);
        let foreign = self.foreign.as_ref();
        if foreign.is_some_and(|(_, moved)| moved.processes().is_empty()) {
            testbed.notes.push(
                "without --pid the broker stays on the cores it has, and its processor time and memory are unknown"
                    .to_owned(),
            );
        }
        testbed
    }
}

impl MqttPeer {
    fn installation(self) -> &'static str {
        match self {
            Self::Mosquitto => mosquitto::INSTALLATION,
            Self::Mochi => mochi::INSTALLATION,
            Self::RabbitMq => RABBITMQ,
        }
    }
}

impl Subject {
    /// Its address for a case.
    pub(super) fn broker(&self, case: Case) -> Option<&Broker> {
        match case.kind() {
            Kind::Connections { is_tls: true } => self.tls.as_ref(),
            Kind::Connections { is_tls: false } => self.plain.as_ref(),
            // A foreign one may have TLS alone.
            _ => self.plain.as_ref().or(self.tls.as_ref()),
        }
    }
}

impl Fresh {
    fn own(site: &Site, name: &str, certificate: &Certificate) -> Result<Self, BenchError> {
        let addresses = (
            site.network.free_server_address()?,
            site.network.free_server_address()?,
        );
        let process = node::start(site, name, addresses, certificate)?;
        Ok(Self::of(OWN, process, addresses))
    }

    fn mosquitto(
        site: &Site,
        directory: &str,
        program: &Path,
        certificate: &Certificate,
    ) -> Result<Self, BenchError> {
        let addresses = (
            site.network.free_server_address()?,
            site.network.free_server_address()?,
        );
        let directory = site.directory.path().join(directory);
        let place = site.network.server_place(&site.allowed);
        let command = guarded(&site.executable, &place, program);
        let tls = (addresses.1, &*certificate.certificate, &*certificate.key);
        let mut process = mosquitto::start(command, &directory, addresses.0, tls)?;
        for address in [addresses.0, addresses.1] {
            process.wait_until_it_accepts(&Endpoint::Tcp(address), PATIENCE)?;
        }
        Ok(Self::of(MqttPeer::Mosquitto.name(), process, addresses))
    }

    /// Its program has one listener, which is a plain one here.
    fn mochi(site: &Site, directory: &str, program: &Path) -> Result<Self, BenchError> {
        let address = || site.network.free_server_address();
        let addresses = [address()?, address()?, address()?];
        let directory = site.directory.path().join(directory);
        let place = site.network.server_place(&site.allowed);
        let command = guarded(&site.executable, &place, program);
        let mut process = mochi::start(command, &directory, addresses)?;
        process.wait_until_it_accepts(&Endpoint::Tcp(addresses[0]), PATIENCE)?;
        let mut started = Self::of(
            MqttPeer::Mochi.name(),
            process,
            (addresses[0], addresses[0]),
        );
        started.subject.tls = None;
        Ok(started)
    }

    fn of(
        name: &str,
        process: ServerProcess,
        (plain, tls): (std::net::SocketAddr, std::net::SocketAddr),
    ) -> Self {
        Self {
            subject: Subject {
                name: name.to_owned(),
                plain: Some(Broker::own(plain)),
                tls: Some(Broker::own(tls).with_tls()),
                processes: process_tree(process.id()),
            },
            process,
        }
    }

    fn alive(&mut self) -> Result<Subject, BenchError> {
        BenchError::check_alive(&self.subject.name, self.process.is_alive())?;
        Ok(self.subject.clone())
    }
}

/// One that ran before the bench and goes on after it, if it opens a session.
fn find(broker: &Broker) -> Result<Broker, BenchError> {
    let session = Session {
        client_id: "crosstie-bench",
        clean_start: true,
        is_kept: false,
    };
    let wire = Dial::new(broker, version(false)).and_then(|dial| dial.open(session));
    let wire = wire.map_err(|error| BenchError::Options(format!("--url: {error}")))?;
    wire.leave()?;
    Ok(broker.clone())
}

fn start_floor(floor: &mut Workers<Listening>, site: &Site) -> Result<Broker, BenchError> {
    let address = site.network.free_server_address()?;
    let place = site.network.server_place(&site.allowed);
    let order = FloorOrder { address };
    floor.start_server(
        "the floor's broker",
        &site.executable,
        FLOOR,
        &place,
        &order,
    )?;
    Ok(Broker::own(address))
}
