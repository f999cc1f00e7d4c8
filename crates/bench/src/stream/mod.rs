//! `bench stream`: a stream's transactions, throughput and connections, in netperf's terms.
//!
//! ```text
//! for each test, kind of socket, mode of the server, and placement
//!     for each round      testee ▶ floor ▶ blocking floor ▶ netserver ▶ testee ▶ …
//!         fresh driver process, probe, warm-up, window, every byte checked
//! ```
//!
//! It never says what merely fitted into buffers. A throughput is what came back from an echo, or
//! what a server that discards had read when it closed; a server that is not what its case says is
//! an error, and so is a connection that would meet itself.

pub mod address;
pub mod case;
pub mod document;
pub mod driver;
pub mod floor;
mod goals;
pub(crate) mod local;
mod netperf;
mod options;
pub(crate) mod pattern;
mod present;
mod round;
mod section;
mod subjects;
pub(crate) mod testee;
mod throughput;
mod transactions;
pub(crate) mod watch;

pub use options::StreamOptions;

use std::io::{self, IsTerminal};
use std::path::PathBuf;

use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;

use crate::error::BenchError;
use crate::figures::Series;
use crate::machine::Machine;
use crate::machine::placement::{Cores, Placement, allowed_cores, bind_this_thread};
use crate::network::Network;
use crate::process::directory;
use crate::report::json::{Frame, Row, write};

use case::Case;
use netperf::Netperf;
use section::Section;

/// What `bench stream` found, as it stands in the JSON frame.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamReport {
    pub rows: Vec<Row>,
}

impl StreamReport {
    /// Whether no round of any subject failed.
    pub fn is_valid(&self) -> bool {
        !self.rows.iter().any(Row::has_failed)
    }
}

/// Measures, prints to standard output, and writes the JSON file if one was asked for. What was
/// measured before an error is printed and written all the same.
pub fn stream(options: StreamOptions) -> Result<StreamReport, BenchError> {
    let bench = Bench::new(options)?;
    let mut sections = Vec::new();
    let outcome = bench.measure_all(&mut sections);
    bench.progress.finish_and_clear();
    if outcome.is_ok() || !sections.is_empty() {
        present::print(&mut io::stdout(), &bench, &sections)?;
    }
    let rows: Vec<Row> = sections
        .iter()
        .flat_map(|section| section.rows(&bench))
        .collect();
    if let Some(path) = &bench.options.json {
        let frame = Frame {
            bench: "stream",
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
    Ok(StreamReport { rows })
}

/// The options, made definite.
struct Bench {
    options: StreamOptions,
    machine: Machine,
    executable: PathBuf,
    /// Sockets live here.
    directory: tempfile::TempDir,
    network: Network,
    allowed: Vec<usize>,
    cases: Vec<Case>,
    placements: Vec<Placement>,
    netperf: Option<Netperf>,
    progress: ProgressBar,
}

impl Bench {
    fn new(options: StreamOptions) -> Result<Self, BenchError> {
        options.check()?;
        if options.connect.is_some() {
            options.network.check_foreign_server()?;
        }
        let executable = match &options.executable {
            Some(path) => path.clone(),
            None => std::env::current_exe()?,
        };
        let allowed = allowed_cores()?;
        let cases = options.definite_cases()?;
        let placements = options.definite_placements(&allowed);
        let directory = directory::create()?;
        let network = Network::set_up(&options.network, &executable, directory.path())?;
        let netperf = match options.netserver {
            true => Netperf::find(),
            false => None,
        };
        let subjects = 3 + usize::from(netperf.is_some());
        let rounds = cases.len() * placements.len() * options.runs * subjects;
        let seconds = rounds as f64 * (options.seconds + options.warm_up_seconds + 0.05);
        let progress =
            ProgressBar::new(rounds as u64).with_message(format!("about {seconds:.0} s in all"));
        progress.set_style(
            ProgressStyle::with_template("{bar:30} {pos}/{len} {msg}")
                .unwrap_or_else(|_| ProgressStyle::default_bar()),
        );
        Ok(Self {
            options,
            machine: Machine::now(),
            executable,
            directory,
            network,
            allowed,
            cases,
            placements,
            netperf,
            progress,
        })
    }

    fn measure_all(&self, sections: &mut Vec<Section>) -> Result<(), BenchError> {
        for placement in &self.placements {
            for case in &self.cases {
                let section = self.measure(*case, *placement)?;
                sections.push(section);
            }
        }
        Ok(())
    }

    /// All rounds of one case in one placement.
    fn measure(&self, case: Case, placement: Placement) -> Result<Section, BenchError> {
        let cores = placement
            .cores(&self.allowed, 1, 1)
            .ok_or_else(|| BenchError::Options(format!("{placement} needs two cores")))?;
        let place = self.network.client_place(&cores.clients);
        self.step_aside(&cores)?;
        let subjects = subjects::start(self, case, &cores)?;
        if let (Some(_), Some(stranger)) = (&self.options.connect, subjects.first()) {
            stranger.probe(self, case, &place)?;
        }
        let mut measured: Vec<Series> = subjects
            .iter()
            .map(|subject| Series::new(&subject.name))
            .collect();
        for at in 0..self.options.runs {
            if self.options.stop.is_wished() {
                break;
            }
            for (subject, series) in subjects.iter().zip(&mut measured) {
                // A round that failed is a failed run, and a server that hangs hangs again.
                if series.rounds.iter().all(Result::is_ok) {
                    self.announce(&subject.name, case, placement, at);
                    series.push(subject.round(self, case, &place));
                }
                self.progress.inc(1);
            }
        }
        bind_this_thread(&self.allowed)?;
        let mut section = Section {
            case,
            placement,
            endpoints: subjects.iter().map(|s| s.endpoint().clone()).collect(),
            measured,
        };
        section.suspect_floor(self);
        Ok(section)
    }

    /// The bench itself keeps off the one core that everybody else shares.
    fn step_aside(&self, cores: &Cores) -> Result<(), BenchError> {
        if let (true, Some(last)) = (cores.router == cores.clients, self.allowed.last())
            && !cores.router.contains(last)
        {
            bind_this_thread(&[*last])?;
        }
        Ok(())
    }

    fn announce(&self, subject: &str, case: Case, placement: Placement, at: usize) {
        if io::stderr().is_terminal() {
            let runs = self.options.runs;
            let message = format!("{case} {placement}: {subject}, round {}/{runs}", at + 1);
            self.progress.set_message(message);
        }
    }

    fn settings(&self) -> serde_json::Value {
        let options = &self.options;
        json!({
            "seconds": options.seconds,
            "warm_up_seconds": options.warm_up_seconds,
            "request_bytes": options.request_bytes,
            "send_bytes": options.send_bytes,
            "runs": options.runs,
            "network": self.network.description(),
        })
    }
}
