//! `bench oslo`: the remote procedure calls of oslo.messaging over a broker of AMQP 0-9-1, beside
//! the machine's floor, a live RabbitMQ, and the source document's figures.
//!
//! ```text
//! rates       for each case and placement
//!                 for each round      broker ▶ floor ▶ peer ▶ broker ▶ floor ▶ peer ▶ …
//!                     fresh server and client processes, warm-up, window, checks
//! delays      for each case, topology and delay
//!                 for each run        broker ▶ peer ▶ broker ▶ peer ▶ …
//!                     the same, for a number of operations, through a link on one side
//! ```
//!
//! The native ends do what oslo.messaging's do on the wire: four connections, replies that are
//! `mandatory`, confirms waited for on both sides, acknowledgements on both sides.

pub mod case;
mod client;
mod document;
mod envelope;
mod goals;
mod names;
mod options;
mod present;
mod python;
mod round;
mod section;
mod server;
pub mod topology;
pub(crate) mod worker;

pub use options::{OsloOptions, Part};

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};

use crate::broker::Broker;
use crate::broker::subjects::{Brokers, FLOOR_NAME, Subject, Wanted};
use crate::error::BenchError;
use crate::figures::{Figures, Series};
use crate::link::{LinkOptions, units};
use crate::machine::Machine;
use crate::machine::placement::{Cores, Placement, allowed_cores, bind_this_thread};
use crate::network::{Network, NetworkOptions};
use crate::process::directory;
use crate::report::json::{Frame, Row, write};

use case::{Case, Driver};
use client::ClientOrder;
use names::Names;
use python::Python;
use round::{Extent, Plan};
use section::Section;
use server::ServerOrder;
use topology::Topology;
use worker::Role;

/// How many times as many operations go on where no delay bounds them.
const STEADY: u64 = 10;

/// What `bench oslo` found, as it stands in the JSON frame.
#[derive(Clone, Debug, PartialEq)]
pub struct OsloReport {
    pub rows: Vec<Row>,
}

impl OsloReport {
    /// Whether every round of every subject counts.
    pub fn is_valid(&self) -> bool {
        !self.rows.is_empty() && self.rows.iter().all(|row| row.valid)
    }
}

/// Measures, prints to standard output, and writes the JSON file if one was asked for, whatever
/// came of it.
pub fn oslo(options: OsloOptions) -> Result<OsloReport, BenchError> {
    let bench = Bench::new(options)?;
    let mut brokers = bench.brokers()?;
    let mut out = io::stdout();
    present::print_header(&mut out, &bench, &brokers)?;
    let mut sections = Vec::new();
    let outcome = bench.measure_all(&mut out, &mut brokers, &mut sections);
    bind_this_thread(&bench.allowed)?;
    let rows: Vec<Row> = sections.iter().flat_map(Section::rows).collect();
    if let Some(path) = &bench.options.json {
        let frame = Frame {
            bench: "oslo",
            version: &bench.options.build.version,
            commit: &bench.options.build.commit,
            machine: &bench.machine,
            settings: bench.settings(&brokers),
            results: rows.clone(),
            verdicts: Vec::new(),
        };
        write(path, &frame)?;
    }
    outcome?;
    Ok(OsloReport { rows })
}

/// The options, made definite.
struct Bench {
    options: OsloOptions,
    machine: Machine,
    executable: PathBuf,
    /// Node directories, stores and scripts live here.
    directory: tempfile::TempDir,
    network: Network,
    /// A network with a link for each delay.
    links: Vec<(Duration, Network)>,
    allowed: Vec<usize>,
    placements: Vec<Placement>,
    python: Option<Python>,
}

impl Bench {
    fn new(options: OsloOptions) -> Result<Self, BenchError> {
        options.check()?;
        let executable = match &options.executable {
            Some(path) => path.clone(),
            None => std::env::current_exe()?,
        };
        let directory = directory::create()?;
        let python = match &options.python {
            Some(program) => Some(Python::find(program, directory.path())?),
            None => None,
        };
        let set_up = |options| Network::set_up(&options, &executable, directory.path());
        let mut links = Vec::new();
        for delay in &options.delays {
            let link = LinkOptions {
                delay: *delay,
                ..LinkOptions::default()
            };
            let network = set_up(NetworkOptions {
                link: Some(link),
                netns: false,
            })?;
            links.push((*delay, network));
        }
        let allowed = allowed_cores()?;
        Ok(Self {
            machine: Machine::now(),
            network: set_up(NetworkOptions::default())?,
            links,
            placements: options.definite_placements(&allowed),
            allowed,
            python,
            executable,
            directory,
            options,
        })
    }

    fn brokers(&self) -> Result<Brokers, BenchError> {
        let wanted = Wanted {
            executable: &self.executable,
            directory: self.directory.path(),
            url: self.options.url.as_ref(),
            pids: &self.options.broker_pids,
            peers: &self.options.peers,
        };
        Brokers::start(&wanted, &self.network)
    }

    fn measure_all(
        &self,
        out: &mut impl Write,
        brokers: &mut Brokers,
        sections: &mut Vec<Section>,
    ) -> Result<(), BenchError> {
        let is_wished = |part| self.options.part.is_none_or(|only| only == part);
        if is_wished(Part::Rates) {
            for placement in &self.placements {
                for case in self.options.cases() {
                    let section = self.measure(case, *placement, None, brokers)?;
                    if section.has_rounds() {
                        present::print_rates(out, &section)?;
                        sections.push(section);
                    }
                }
            }
        }
        if is_wished(Part::Delays) {
            let placement = self.delays_placement();
            for case in self.options.cases() {
                let before = sections.len();
                for way in self.options.ways() {
                    let section = self.measure(case, placement, Some(way), brokers)?;
                    if section.has_rounds() {
                        sections.push(section);
                    }
                }
                let delayed: Vec<&Section> = sections[before..].iter().collect();
                present::print_delays(out, case, &delayed, sections)?;
            }
        }
        Ok(())
    }

    /// Apart from the broker where that is possible, as they are on machines of their own.
    fn delays_placement(&self) -> Placement {
        match self.placements.contains(&Placement::Split) {
            true => Placement::Split,
            false => self
                .placements
                .first()
                .copied()
                .unwrap_or(Placement::SameCore),
        }
    }

    /// All rounds of one case.
    fn measure(
        &self,
        case: Case,
        placement: Placement,
        way: Option<(Topology, Duration)>,
        brokers: &mut Brokers,
    ) -> Result<Section, BenchError> {
        let cores = placement
            .cores(&self.allowed, 1, 1)
            .ok_or_else(|| BenchError::Options(format!("{placement} needs two cores")))?;
        self.step_aside(&cores)?;
        let mut subjects = brokers.on(&cores.router)?;
        // The floor knows no more of AMQP than the native ends say, and of a delay it says nothing.
        if case.driver == Driver::Python || way.is_some() {
            subjects.retain(|subject| subject.name != FLOOR_NAME);
        }
        let mut section = Section {
            case,
            placement,
            way,
            measured: subjects.iter().map(|s| Series::new(&s.name)).collect(),
        };
        for at in 0..self.options.runs {
            for (which, subject) in subjects.iter().enumerate() {
                if self.options.stop.is_wished() {
                    return Ok(section);
                }
                self.announce(&section, &subject.name, at);
                let found = self.round(&section, subject, &cores, at);
                section.measured[which].push(found);
            }
        }
        Ok(section)
    }

    fn round(
        &self,
        section: &Section,
        subject: &Subject,
        cores: &Cores,
        at: usize,
    ) -> Result<Figures, String> {
        let near = self
            .by_link(section.way, &subject.broker)
            .map_err(|e| e.to_string())?;
        let (client, server) = match section.way {
            Some((Topology::RemoteClient, _)) => (near, subject.broker.clone()),
            Some((Topology::RemoteServer, _)) => (subject.broker.clone(), near),
            _ => (subject.broker.clone(), subject.broker.clone()),
        };
        let names = Names::of(&format!("{}-{at}", std::process::id()));
        let operation = section.case.operation;
        let (server, client) = match (section.case.driver, &self.python) {
            (Driver::Python, Some(python)) => (
                python.role(true, &server, &names, operation),
                python.role(false, &client, &names, operation),
            ),
            _ => {
                let round = (u64::from(std::process::id()) << 32) + at as u64;
                let server = ServerOrder {
                    broker: server,
                    names: names.clone(),
                    round,
                };
                let client = ClientOrder {
                    broker: client,
                    names,
                    operation,
                    round,
                };
                (Role::Server(server), Role::Client(client))
            }
        };
        let extent = match section.way {
            None => Extent::Time {
                warm_up: Duration::from_secs_f64(self.options.warm_up_seconds),
                measured: Duration::from_secs_f64(self.options.seconds),
            },
            Some((topology, delay)) => Extent::Count {
                operations: self.options.repeat,
                each: delay,
                steady_operations: match topology.limit_per_s(operation, delay) {
                    Some(_) => 0,
                    None => self.options.repeat * STEADY,
                },
            },
        };
        let links = self.links.iter();
        let links = links.flat_map(|(_, network)| network.link_processes());
        round::run(&Plan {
            executable: &self.executable,
            place: &self.network.client_place(&cores.clients),
            server,
            client,
            processes: &subject.processes,
            links: &links.collect::<Vec<_>>(),
            extent,
            stop: &self.options.stop,
        })
    }

    /// The broker by the link of a delay; by none without one.
    fn by_link(
        &self,
        way: Option<(Topology, Duration)>,
        broker: &Broker,
    ) -> Result<Broker, BenchError> {
        let (Topology::RemoteClient | Topology::RemoteServer, wanted) =
            way.unwrap_or((Topology::Together, Duration::ZERO))
        else {
            return Ok(broker.clone());
        };
        let link = self.links.iter().find(|(delay, _)| *delay == wanted);
        match link {
            Some((_, network)) => Ok(broker.by(network.reach(&broker.endpoint)?)),
            None => Ok(broker.clone()),
        }
    }

    /// The bench itself keeps off the one core that everybody else shares.
    fn step_aside(&self, cores: &Cores) -> Result<(), BenchError> {
        match self.allowed.last() {
            Some(last) if cores.router == cores.clients && !cores.router.contains(last) => {
                bind_this_thread(&[*last])?;
            }
            _ => bind_this_thread(&self.allowed)?,
        }
        Ok(())
    }

    /// A progress line, for people who watch.
    fn announce(&self, section: &Section, subject: &str, at: usize) {
        if io::stderr().is_terminal() {
            let (name, placement) = (section.name(), section.placement);
            let runs = self.options.runs;
            let _ = writeln!(
                io::stderr(),
                "{name} {placement}: {subject}, round {}/{runs}",
                at + 1
            );
        }
    }

    fn settings(&self, brokers: &Brokers) -> Value {
        let options = &self.options;
        let delays = options.delays.iter().map(|delay| units::written(*delay));
        json!({
            "seconds": options.seconds,
            "warm_up_seconds": options.warm_up_seconds,
            "repeat": options.repeat,
            "runs": options.runs,
            "delays": delays.collect::<Vec<_>>(),
            "placements": self.placements.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "oslo_messaging": self.python.as_ref().map(|python| &python.version),
            "peers": brokers.peer_settings(),
            "document_hardware": document::HARDWARE,
        })
    }
}
