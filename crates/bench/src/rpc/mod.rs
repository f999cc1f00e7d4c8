//! `bench rpc`: the round trip of a call, beside the floor of the machine, the source document's
//! figure and live peers.
//!
//! ```text
//! for each case and placement
//!     for each round      router ▶ floor ▶ peer ▶ router ▶ floor ▶ peer ▶ …
//!         fresh callee and caller processes, warm-up, window, checks
//! ```

mod baseline;
pub mod goals;
mod options;
mod present;
pub mod round;
mod section;
mod subjects;
pub mod summary;
pub(crate) mod worker;

pub use options::RpcOptions;

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;

use crate::error::BenchError;
use crate::machine::Machine;
use crate::machine::placement::{Cores, Placement, allowed_cores, bind_this_thread};
use crate::network::Network;
use crate::process::directory;
use crate::process::place::Place;
use crate::report::document;
use crate::report::json::{Frame, Row, write};
use crate::subject::case::Case;
use round::{Ends, Plan, Round, run};
use summary::Measured;

use crate::subject::routers::{Reachable, Routers};
use baseline::Baseline;
use section::Section;

/// What `bench rpc` found, as it stands in the JSON frame.
#[derive(Clone, Debug, PartialEq)]
pub struct RpcReport {
    pub rows: Vec<Row>,
}

impl RpcReport {
    /// Whether no round of any subject failed.
    pub fn is_valid(&self) -> bool {
        !self.rows.iter().any(Row::has_failed)
    }
}

/// Measures, prints to standard output, and writes the JSON file if one was asked for.
pub fn rpc(options: RpcOptions) -> Result<RpcReport, BenchError> {
    let bench = Bench::new(options)?;
    let mut out = io::stdout();
    let mut subjects = subjects::start(&bench)?;
    for note in subjects.notes() {
        writeln!(out, "{note}")?;
    }
    let mut sections = Vec::new();
    for placement in &bench.placements {
        for case in &bench.cases {
            if bench.options.stop.is_wished() {
                break;
            }
            sections.push(bench.measure(*case, *placement, &mut subjects)?);
        }
    }
    bench.progress.finish_and_clear();
    present::print(&mut out, &bench, &subjects, &sections)?;
    let rows: Vec<Row> = sections
        .iter()
        .flat_map(|section| section.rows(&bench))
        .collect();
    if let Some(path) = &bench.options.json {
        let frame = Frame {
            bench: "rpc",
            version: &bench.options.build.version,
            commit: &bench.options.build.commit,
            machine: &bench.machine,
            settings: bench.settings(&subjects),
            results: rows.clone(),
        };
        write(path, &frame)?;
    }
    Ok(RpcReport { rows })
}

/// The options, made definite.
struct Bench {
    options: RpcOptions,
    machine: Machine,
    executable: PathBuf,
    /// Between every subject and its clients.
    network: Network,
    /// Sockets and node directories live here.
    directory: tempfile::TempDir,
    allowed: Vec<usize>,
    cases: Vec<Case>,
    placements: Vec<Placement>,
    progress: ProgressBar,
}

impl Bench {
    fn new(options: RpcOptions) -> Result<Self, BenchError> {
        options.check()?;
        let executable = match &options.executable {
            Some(path) => path.clone(),
            None => std::env::current_exe()?,
        };
        let allowed = allowed_cores()?;
        let cases = options.definite_cases()?;
        let placements = options.definite_placements(&allowed);
        let per_round = options.seconds + options.warm_up_seconds;
        let rounds = cases.len() * placements.len() * options.runs * (2 + options.peers.len());
        let progress = ProgressBar::new(rounds as u64).with_message(format!(
            "about {:.0} s in all",
            rounds as f64 * (per_round + 0.05)
        ));
        progress.set_style(
            ProgressStyle::with_template("{bar:30} {pos}/{len} {msg}")
                .unwrap_or_else(|_| ProgressStyle::default_bar()),
        );
        let directory = directory::create()?;
        let network = Network::set_up(&options.network, &executable, directory.path())?;
        Ok(Self {
            options,
            machine: Machine::now(),
            executable,
            directory,
            network,
            allowed,
            cases,
            placements,
            progress,
        })
    }

    /// All rounds of one case in one placement.
    fn measure(
        &self,
        case: Case,
        placement: Placement,
        subjects: &mut Routers,
    ) -> Result<Section, BenchError> {
        let options = &self.options;
        let cores = placement
            .cores(&self.allowed, options.router_threads, options.pairs)
            .ok_or_else(|| BenchError::Options(format!("{placement} needs two cores")))?;
        self.step_aside(&cores)?;
        let present = subjects.of(case, &cores.router, &self.network)?;
        let baseline = Baseline::start(self, case, &cores)?;
        let capacity = cores.router.len().min(options.router_threads) as f64;
        let mut measured: Vec<Measured> = present
            .iter()
            .map(|subject| Measured::new(&subject.name, capacity))
            .collect();
        let mut floor = Measured::new("floor", capacity);
        for at in 0..options.runs {
            if options.stop.is_wished() {
                break;
            }
            for (subject, measured) in present.iter().zip(&mut measured) {
                let shown = (!subject.is_peer).then(|| case.document_prefix());
                let round = self.round(subject, &cores, &format!("{case} {placement}"), at, shown);
                measured.rounds.push(round);
                // The floor comes second: beside the router, before any peer.
                if floor.rounds.len() == at {
                    self.announce("floor", &format!("{case} {placement}"), at);
                    let place = self.network.client_place(&cores.clients);
                    let plan = self.plan(&baseline.ends, &place, &baseline.processes);
                    floor.rounds.push(run(&plan, &mut |_| {}));
                    self.progress.inc(1);
                }
            }
        }
        floor.suspect = baseline.suspicion(self, case, placement, &floor);
        measured.insert(1.min(measured.len()), floor);
        bind_this_thread(&self.allowed)?;
        Ok(Section {
            case,
            placement,
            floor: baseline.description(),
            measured,
        })
    }

    fn round(
        &self,
        subject: &Reachable,
        cores: &Cores,
        what: &str,
        at: usize,
        prefix: Option<String>,
    ) -> Round {
        self.announce(&subject.name, what, at);
        let ends = subjects::ends(&subject.target, &self.options, at);
        let place = self.network.client_place(&cores.clients);
        let plan = self.plan(&ends, &place, &subject.processes);
        let round = run(&plan, &mut |average_ms| {
            if let Some(prefix) = &prefix {
                let line = document::line(prefix, average_ms);
                // A reader that has gone away is noticed by the tables.
                self.progress.suspend(|| {
                    let _ = writeln!(io::stdout(), "{line}");
                });
            }
        });
        self.progress.inc(1);
        round
    }

    fn plan<'a>(&'a self, ends: &'a [Ends], place: &'a Place, subject: &'a [u32]) -> Plan<'a> {
        Plan {
            executable: &self.executable,
            ends,
            place,
            subject,
            warm_up: Duration::from_secs_f64(self.options.warm_up_seconds),
            measured: Duration::from_secs_f64(self.options.seconds),
            stop: &self.options.stop,
        }
    }

    fn announce(&self, subject: &str, what: &str, at: usize) {
        if io::stderr().is_terminal() {
            self.progress.set_message(format!(
                "{what}: {subject}, round {}/{}",
                at + 1,
                self.options.runs
            ));
        }
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

    fn settings(&self, subjects: &Routers) -> serde_json::Value {
        let options = &self.options;
        json!({
            "seconds": options.seconds,
            "warm_up_seconds": options.warm_up_seconds,
            "batch": options.batch,
            "outstanding": options.outstanding,
            "pairs": options.pairs,
            "payload_bytes": options.payload_bytes,
            "runs": options.runs,
            "router_threads": options.router_threads,
            "spin": options.spin,
            "network": self.network.description(),
            "placements": self.placements.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "peers": subjects.peer_settings(),
            "document_hardware": document::HARDWARE,
        })
    }
}

impl Bench {
    fn in_flight(&self) -> usize {
        self.options.outstanding * self.options.pairs
    }
}
