//! `bench amqp`: messages from publishers through a queue to consumers, over any broker of
//! AMQP 0-9-1, beside the machine's floor and a live RabbitMQ.
//!
//! ```text
//! for each case and placement
//!     for each round      broker ▶ floor ▶ peer ▶ broker ▶ floor ▶ peer ▶ …
//!         a fresh driver process, warm-up, window, every message checked by its number
//! ```
//!
//! A broker takes messages faster than it delivers them, so a driver without a bound measures how
//! its queue grows. This one keeps a number of messages under way, and what is measured is what
//! has arrived.

pub mod case;
mod confirms;
mod goals;
mod ledger;
mod levels;
mod options;
mod pace;
mod present;
mod round;
mod section;
pub(crate) mod worker;

pub use options::AmqpOptions;

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};

use crate::broker::subjects::{Brokers, FLOOR_NAME, Subject, Wanted};
use crate::error::BenchError;
use crate::figures::{Figures, Series};
use crate::machine::Machine;
use crate::machine::placement::{Cores, Placement, allowed_cores, bind_this_thread};
use crate::network::Network;
use crate::process::directory;
use crate::report::json::{Frame, Row, write};

use case::Case;
use round::Plan;
use section::Section;
use worker::Order;

/// What `bench amqp` found, as it stands in the JSON frame.
#[derive(Clone, Debug, PartialEq)]
pub struct AmqpReport {
    pub rows: Vec<Row>,
}

impl AmqpReport {
    /// Whether every round of every subject counts.
    pub fn is_valid(&self) -> bool {
        !self.rows.is_empty() && self.rows.iter().all(|row| row.valid)
    }
}

/// Measures, prints to standard output, and writes the JSON file if one was asked for, whatever
/// came of it.
pub fn amqp(options: AmqpOptions) -> Result<AmqpReport, BenchError> {
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
            bench: "amqp",
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
    Ok(AmqpReport { rows })
}

/// The options, made definite.
struct Bench {
    options: AmqpOptions,
    machine: Machine,
    executable: PathBuf,
    /// Node directories and stores live here.
    directory: tempfile::TempDir,
    network: Network,
    allowed: Vec<usize>,
    placements: Vec<Placement>,
}

impl Bench {
    fn new(options: AmqpOptions) -> Result<Self, BenchError> {
        options.check()?;
        if options.url.is_some() {
            options.network.check_foreign_server()?;
        }
        let executable = match &options.executable {
            Some(path) => path.clone(),
            None => std::env::current_exe()?,
        };
        let directory = directory::create()?;
        let network = Network::set_up(&options.network, &executable, directory.path())?;
        let allowed = allowed_cores()?;
        Ok(Self {
            machine: Machine::now(),
            network,
            placements: options.definite_placements(&allowed),
            allowed,
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
        for placement in &self.placements {
            for case in self.options.cases() {
                let section = self.measure(case, *placement, brokers)?;
                if section.has_rounds() {
                    present::print_section(out, self, &section)?;
                    sections.push(section);
                }
            }
        }
        Ok(())
    }

    /// All rounds of one case in one placement.
    fn measure(
        &self,
        case: Case,
        placement: Placement,
        brokers: &mut Brokers,
    ) -> Result<Section, BenchError> {
        let pairs = self.options.producers.max(self.options.consumers);
        let cores = placement
            .cores(&self.allowed, 1, pairs)
            .ok_or_else(|| BenchError::Options(format!("{placement} needs two cores")))?;
        self.step_aside(&cores)?;
        let mut subjects = brokers.on(&cores.router)?;
        // The floor keeps nothing on a disk, and nothing in any order but one.
        subjects.retain(|subject| case == Case::Transient || subject.name != FLOOR_NAME);
        let mut section = Section {
            case,
            placement,
            measured: subjects.iter().map(|s| Series::new(&s.name)).collect(),
        };
        for at in 0..self.options.runs {
            for (which, subject) in subjects.iter().enumerate() {
                if self.options.stop.is_wished() {
                    return Ok(section);
                }
                self.announce(&section, &subject.name, at);
                let found = self.round(case, subject, &cores, at);
                section.measured[which].push(found);
            }
        }
        Ok(section)
    }

    fn round(
        &self,
        case: Case,
        subject: &Subject,
        cores: &Cores,
        at: usize,
    ) -> Result<Figures, String> {
        let options = &self.options;
        let near = self.network.reach(&subject.broker.endpoint);
        round::run(&Plan {
            executable: &self.executable,
            place: &self.network.client_place(&cores.clients),
            order: &Order {
                broker: subject.broker.by(near.map_err(|error| error.to_string())?),
                queue: format!("crosstie-bench-{}-{at}", std::process::id()),
                case,
                payload_bytes: options.payload_bytes,
                in_flight: options.in_flight,
                window: options.window,
                prefetch: options.prefetch,
                rate: options.rate,
                producers: options.producers,
                consumers: options.consumers,
            },
            processes: &subject.processes,
            warm_up: Duration::from_secs_f64(options.warm_up_seconds),
            measured: Duration::from_secs_f64(options.seconds),
            stop: &options.stop,
        })
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
            let (case, placement) = (section.case, section.placement);
            let runs = self.options.runs;
            let line = format!("{case} {placement}: {subject}, round {}/{runs}", at + 1);
            let _ = writeln!(io::stderr(), "{line}");
        }
    }

    fn settings(&self, brokers: &Brokers) -> Value {
        let options = &self.options;
        json!({
            "seconds": options.seconds,
            "warm_up_seconds": options.warm_up_seconds,
            "payload_bytes": options.payload_bytes,
            "in_flight": options.in_flight,
            "window": options.window,
            "prefetch": options.prefetch,
            "rate": options.rate,
            "producers": options.producers,
            "consumers": options.consumers,
            "runs": options.runs,
            "network": self.network.description(),
            "placements": self.placements.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "peers": brokers.peer_settings(),
        })
    }
}
