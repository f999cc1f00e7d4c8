//! `bench node`: a whole node, as a user starts it: controller, router, and the components that
//! its directory names. The source document shows its log and a picture of the system's load; this
//! takes both, and the same of a peer in the same directory.
//!
//! ```text
//!  a copy of the directory ─▶ spawn ─▶ transports accept ─▶ callers' first lines ─▶ warm-up
//!                                                                                      │
//!  SIGINT, exit code, who is left ◀─ a look at each process ◀─ window ◀─ a look at each process
//! ```
//!
//! The callers of the directory are the load, and the lines that they print its result: the bench
//! adds no client of its own. The native example has a floor besides: its pairs as plain processes
//! around a router that is no node.

mod goals;
mod lines;
mod options;
mod original;
mod present;
mod processes;
mod python;
mod round;
mod section;
mod subject;

pub use options::NodeOptions;

use std::collections::BTreeMap;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::error::BenchError;
use crate::machine::Machine;
use crate::machine::placement::allowed_cores;
use crate::network::{Network, NetworkOptions};
use crate::peer::Peer;
use crate::peer::crossbar;
use crate::process::directory;
use crate::report::json::{Frame, Row, write};

use original::{NATIVE_NAME, Original};
use section::Section;
use subject::Subject;

/// What `bench node` found, as it stands in the JSON frame.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeReport {
    pub rows: Vec<Row>,
}

impl NodeReport {
    /// Whether every round of every subject counts.
    pub fn is_valid(&self) -> bool {
        !self.rows.is_empty() && self.rows.iter().all(|row| row.valid)
    }
}

/// Measures, prints to standard output, and writes the JSON file if one was asked for, whatever
/// came of it.
pub fn node(options: NodeOptions) -> Result<NodeReport, BenchError> {
    let bench = Bench::new(options)?;
    let mut out = io::stdout();
    present::print_header(&mut out, &bench)?;
    let mut sections = Vec::new();
    let outcome = bench.measure_all(&mut out, &mut sections);
    let rows: Vec<Row> = sections.iter().flat_map(Section::rows).collect();
    if let Some(path) = &bench.options.json {
        let frame = Frame {
            bench: "node",
            version: &bench.options.build.version,
            commit: &bench.options.build.commit,
            machine: &bench.machine,
            settings: bench.settings(),
            results: rows.clone(),
            verdicts: Vec::new(),
        };
        write(path, &frame)?;
    }
    outcome?;
    Ok(NodeReport { rows })
}

/// The options, made definite.
struct Bench {
    options: NodeOptions,
    machine: Machine,
    executable: PathBuf,
    /// Each round's copy of a node directory lives here.
    directory: tempfile::TempDir,
    network: Network,
    cores: Vec<usize>,
    originals: Vec<Original>,
    crossbar: Option<Crossbar>,
}

/// The peer's program and version.
struct Crossbar {
    program: PathBuf,
    version: String,
}

impl Bench {
    fn new(options: NodeOptions) -> Result<Self, BenchError> {
        options.check()?;
        let executable = match &options.executable {
            Some(path) => path.clone(),
            None => std::env::current_exe()?,
        };
        let mut originals = Vec::new();
        for directory in &options.directories {
            originals.push(Original::at(directory)?);
        }
        if options.directories.is_empty() && !options.native {
            originals.push(Original::example(&executable)?);
        }
        if options.directories.is_empty() || options.native {
            originals.push(Original::native()?);
        }
        for original in originals.iter().filter(|original| original.needs_python()) {
            python::check(original, options.python.as_deref(), &executable)?;
        }
        let directory = directory::create()?;
        let network = NetworkOptions::default();
        let crossbar = crossbar::find_on_path("crossbar").map(|program| Crossbar {
            version: crossbar::version(&program),
            program,
        });
        Ok(Self {
            machine: Machine::now(),
            network: Network::set_up(&network, &executable, directory.path())?,
            executable,
            directory,
            cores: allowed_cores()?,
            originals,
            crossbar: crossbar.filter(|_| options.peers.contains(&Peer::Crossbar)),
            options,
        })
    }

    fn measure_all(
        &self,
        out: &mut impl Write,
        sections: &mut Vec<Section>,
    ) -> Result<(), BenchError> {
        for original in &self.originals {
            if self.options.stop.is_wished() {
                break;
            }
            let subjects = self.subjects(original);
            let mut section = Section::new(&original.name, &subjects);
            let outcome = self.measure(original, &subjects, &mut section);
            if section.has_rounds() {
                present::print_section(out, self, &section)?;
                sections.push(section);
            }
            outcome?;
        }
        Ok(())
    }

    fn subjects(&self, original: &Original) -> Vec<Subject> {
        let mut subjects = vec![Subject::Crosstie];
        if let Some(crossbar) = &self.crossbar {
            subjects.push(Subject::Crossbar(crossbar.program.clone()));
        }
        if original.name == NATIVE_NAME {
            subjects.push(Subject::Plain);
        }
        subjects
    }

    /// All rounds of one directory; in each, everybody takes a turn.
    fn measure(
        &self,
        original: &Original,
        subjects: &[Subject],
        section: &mut Section,
    ) -> Result<(), BenchError> {
        for number in 1..=self.options.runs {
            for subject in subjects {
                if self.options.stop.is_wished() {
                    return Ok(());
                }
                if section.has_failed(subject) {
                    continue;
                }
                self.announce(original, subject, number);
                // A short name: what a Unix socket's path may have is soon used up.
                let directory = self.directory.path().join("node");
                let found = round::round(self, subject, original, &directory);
                // A copy is of no use after its round, and a large directory is copied often.
                let _ = std::fs::remove_dir_all(&directory);
                match found {
                    Ok(found) => section.push(subject, found),
                    Err(_) if self.options.stop.is_wished() => return Ok(()),
                    Err(BenchError::Server { why, .. }) => section.fail(subject, &why),
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }

    /// A progress line, for people who watch.
    fn announce(&self, original: &Original, subject: &Subject, number: usize) {
        if io::stderr().is_terminal() {
            let _ = writeln!(
                io::stderr(),
                "{}: round {number} of {}, {}",
                original.name,
                self.options.runs,
                subject.name()
            );
        }
    }

    /// Who prints averages in a directory, and after how many calls each.
    fn callers(&self, original: &Original) -> BTreeMap<String, u64> {
        let callers = original.callers().into_iter();
        let usual = self.options.batch;
        callers
            .map(|caller| (caller.title, caller.batch.unwrap_or(usual)))
            .collect()
    }

    fn check_stop(&self) -> Result<(), BenchError> {
        match self.options.stop.is_wished() {
            true => Err(BenchError::Options("the run was ended".to_owned())),
            false => Ok(()),
        }
    }

    fn settings(&self) -> Value {
        let options = &self.options;
        let peers: Vec<Value> = options
            .peers
            .iter()
            .map(|peer| {
                json!({
                    "name": peer.name(),
                    "version": self.crossbar.as_ref().map(|crossbar| &crossbar.version),
                    "present": self.crossbar.is_some(),
                })
            })
            .collect();
        json!({
            "seconds": options.seconds,
            "warm_up_seconds": options.warm_up_seconds,
            "runs": options.runs,
            "directories": self.originals.iter().map(|o| &o.name).collect::<Vec<_>>(),
            "peers": peers,
        })
    }
}
