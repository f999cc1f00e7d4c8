//! `bench hostile`: what one peer can do to everybody else, of any WAMP router and any AMQP broker.
//!
//! ```text
//!  witness ──calls, events, joins, /health, messages, connects──▶ ┌────────┐
//!    (well-behaved, how long each waited)                         │ router │
//!  attacker ──one thing that nobody should be able to do────────▶ └────────┘
//!    (raw bytes, bounded in count and time)                        CPU, memory
//! ```
//!
//! Attacker and witness are processes of their own. The witness runs alone first, then beside one
//! attack after the other, each on a node that was started for it. An attack that is refused by a
//! bound has failed, and the router is the better for it: what it was refused with is printed.

mod amqp;
pub(crate) mod attacker;
mod attacks;
pub mod catalogue;
mod figures;
pub mod options;
mod pages;
mod present;
mod round;
mod subject;
mod watch;
mod ways;
pub(crate) mod witness;

pub use catalogue::AttackName;
pub use options::{HostileOptions, HostilePeer};

use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::error::BenchError;
use crate::machine::Machine;
use crate::network::{Network, NetworkOptions};
use crate::process::directory;
use crate::report::json::{Frame, Row, write};

use catalogue::{Attack, Setting};
use round::Outcome;
use subject::{Starting, Subject};

/// The name of the witness alone.
const IDLE: &str = "idle";

/// What `bench hostile` found, as it stands in the JSON frame.
#[derive(Clone, Debug, PartialEq)]
pub struct HostileReport {
    pub rows: Vec<Row>,
}

impl HostileReport {
    /// Whether everybody who was attacked is still alive.
    pub fn is_valid(&self) -> bool {
        !self.rows.is_empty() && self.rows.iter().all(|row| row.valid)
    }
}

/// Prints the attacks that there are.
pub fn list() -> io::Result<()> {
    present::print_list(&mut io::stdout())
}

/// Measures, prints to standard output, and writes the JSON file if one was asked for.
pub fn hostile(options: HostileOptions) -> Result<HostileReport, BenchError> {
    let bench = Bench::new(options)?;
    let mut out = io::stdout();
    present::print_header(&mut out, &bench)?;
    let mut rows = Vec::new();
    let mut peers = Vec::new();
    for subject in bench.subjects() {
        let Some(measured) = bench.measure(subject)? else {
            writeln!(out, "\n{}: absent", subject.name())?;
            continue;
        };
        present::print_subject(&mut out, &measured)?;
        peers.push(measured.subject.clone());
        rows.extend(measured.rows());
    }
    if let Some(path) = &bench.options.json {
        let frame = Frame {
            bench: "hostile",
            version: &bench.options.build.version,
            commit: &bench.options.build.commit,
            machine: &bench.machine,
            settings: bench.settings(&peers),
            results: rows.clone(),
            verdicts: Vec::new(),
        };
        write(path, &frame)?;
    }
    Ok(HostileReport { rows })
}

/// The options, made definite.
struct Bench {
    options: HostileOptions,
    machine: Machine,
    executable: PathBuf,
    /// Node directories and stores live here.
    directory: tempfile::TempDir,
    network: Network,
}

/// All that was found out about one subject.
struct Measured {
    subject: String,
    /// The witness alone first.
    outcomes: Vec<(&'static str, Result<Outcome, String>)>,
}

impl Measured {
    /// What was left out has none.
    fn rows(&self) -> Vec<Row> {
        let found = self.outcomes.iter().filter_map(|(name, outcome)| {
            let outcome = outcome.as_ref().ok()?;
            Some(outcome.row(name, &self.subject))
        });
        found.collect()
    }
}

impl Bench {
    fn new(options: HostileOptions) -> Result<Self, BenchError> {
        options.check()?;
        let executable = match &options.executable {
            Some(path) => path.clone(),
            None => std::env::current_exe()?,
        };
        let directory = directory::create()?;
        let network = Network::set_up(&NetworkOptions::default(), &executable, directory.path())?;
        Ok(Self {
            machine: Machine::now(),
            executable,
            directory,
            network,
            options,
        })
    }

    fn subjects(&self) -> Vec<Subject> {
        let own = match self.options.is_foreign() {
            true => Subject::Foreign,
            false => Subject::Own,
        };
        let peers = self.options.peers.iter().map(|peer| Subject::Peer(*peer));
        std::iter::once(own).chain(peers).collect()
    }

    /// The witness alone, then beside each attack; nothing where the subject is not installed.
    fn measure(&self, subject: Subject) -> Result<Option<Measured>, BenchError> {
        let mut outcomes = Vec::new();
        let attacks = self.options.attacks().into_iter().map(Some);
        for attack in std::iter::once(None).chain(attacks) {
            if self.options.stop.is_wished() {
                break;
            }
            let name = attack.map_or(IDLE, |attack| attack.name);
            self.announce(subject, name);
            let Some(outcome) = self.round(subject, attack)? else {
                return Ok(None);
            };
            outcomes.push((name, outcome));
        }
        Ok(Some(Measured {
            subject: subject.name().to_owned(),
            outcomes,
        }))
    }

    fn round(
        &self,
        subject: Subject,
        attack: Option<&Attack>,
    ) -> Result<Option<Result<Outcome, String>>, BenchError> {
        let name = attack.map_or(IDLE, |attack| attack.name);
        let directory = self.directory.path().join(subject.name()).join(name);
        fs::create_dir_all(&directory)?;
        let setting = attack.map_or(Setting::Default, |attack| attack.setting);
        let starting = Starting {
            options: &self.options,
            executable: &self.executable,
            directory: &directory,
            network: &self.network,
        };
        let Some(mut started) = subject.start(setting, &starting)? else {
            return Ok(None);
        };
        if let Some(lacking) = attack.and_then(|attack| attack.lacks(&started.ways)) {
            return Ok(Some(Err(format!("it needs {lacking}"))));
        }
        let attack = attack.map(|attack| attack.name);
        let found = round::run(&mut started, attack, &self.executable, &self.options);
        Ok(Some(found))
    }

    /// A progress line, for people who watch.
    fn announce(&self, subject: Subject, name: &str) {
        if io::stderr().is_terminal() {
            let _ = writeln!(io::stderr(), "{}: {name}", subject.name());
        }
    }

    fn settings(&self, subjects: &[String]) -> Value {
        let options = &self.options;
        json!({
            "scale": options.scale,
            "consumers": options.consumers,
            "limit_seconds": options.limit_seconds,
            "after_seconds": options.after_seconds,
            "patience_seconds": options.patience_seconds,
            "attacks": options.attacks().iter().map(|attack| attack.name).collect::<Vec<_>>(),
            "subjects": subjects,
        })
    }
}
