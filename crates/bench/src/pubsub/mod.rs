//! `bench pubsub`: Publish & Subscribe under load, beside the floor of a fan-out, the source
//! document's figures and live peers.
//!
//! ```text
//!                   ┌▶ subscriber ┐
//! publisher ─▶ hub ─┼▶ subscriber ├ one process, one epoll      hub: a router, or the floor's relay
//!  by the clock     └▶ subscriber ┘
//!
//! for each load        every subject's clients connect once
//!     for each round   router ▶ floor ▶ peer ▶ router ▶ floor ▶ peer ▶ …
//! ```
//!
//! From the sockets up: [`session`], [`hub`] (what is published and what arrives), `sequence`
//! and [`ledger`] (is it all there), [`subscribers`], [`publisher`], [`relay`]; [`worker`] (those
//! as processes), [`stage`] (the processes of one subject), [`round`] (what a run found);
//! [`contest`] and [`search`] (several subjects), [`lines`] and [`present`].

mod contest;
mod ear;
mod goals;
mod hub;
mod ledger;
mod lines;
mod options;
mod present;
mod profiles;
mod publisher;
mod relay;
mod round;
mod schedule;
mod search;
mod session;
mod stage;
mod subjects;
mod subscribers;
pub(crate) mod worker;

pub use options::{PubSubOptions, Work};

use std::io::{self, Write};
use std::path::PathBuf;

use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;

use crate::error::BenchError;
use crate::machine::Machine;
use crate::machine::placement::{Placement, allowed_cores};
use crate::network::Network;
use crate::process::{descriptors, directory};
use crate::report::json::{Frame, Row, write};
use crate::subject::case::Case;

use contest::{Contest, Terms};
use profiles::Profile;
use subjects::Subjects;

/// What `bench pubsub` found, as it stands in the JSON frame.
#[derive(Clone, Debug, PartialEq)]
pub struct PubSubReport {
    pub rows: Vec<Row>,
}

impl PubSubReport {
    /// Whether no round of any subject failed.
    pub fn is_valid(&self) -> bool {
        !self.rows.is_empty() && !self.rows.iter().any(Row::has_failed)
    }
}

/// Measures, prints to standard output, and writes the JSON file if one was asked for. What was
/// found before an error is printed and written all the same.
pub fn pubsub(options: PubSubOptions) -> Result<PubSubReport, BenchError> {
    let bench = Bench::new(options)?;
    let mut subjects = Subjects::start(&bench)?;
    for note in subjects.routers.notes() {
        writeln!(io::stdout(), "{note}")?;
    }
    let mut contests = Vec::new();
    let outcome = bench.measure(&mut subjects, &mut contests);
    bench.progress.finish_and_clear();
    if outcome.is_ok() || !contests.is_empty() {
        present::print(&mut io::stdout(), &bench, &contests)?;
    }
    let rows: Vec<Row> = contests.iter().flat_map(Contest::rows).collect();
    if let Some(path) = &bench.options.json {
        let frame = Frame {
            bench: "pubsub",
            version: &bench.options.build.version,
            commit: &bench.options.build.commit,
            machine: &bench.machine,
            settings: bench.settings(&subjects),
            results: rows.clone(),
            verdicts: Vec::new(),
        };
        write(path, &frame)?;
    }
    outcome?;
    Ok(PubSubReport { rows })
}

/// The options, made definite.
struct Bench {
    options: PubSubOptions,
    machine: Machine,
    executable: PathBuf,
    /// Sockets and node directories live here.
    directory: tempfile::TempDir,
    network: Network,
    allowed: Vec<usize>,
    cases: Vec<Case>,
    placements: Vec<Placement>,
    progress: ProgressBar,
}

impl Bench {
    fn new(options: PubSubOptions) -> Result<Self, BenchError> {
        // Whatever is started here inherits it: a router of thousands needs it as much.
        descriptors::raise();
        options.check()?;
        let executable = match &options.executable {
            Some(path) => path.clone(),
            None => std::env::current_exe()?,
        };
        let allowed = allowed_cores()?;
        let cases = options.definite_cases()?;
        let placements = options.definite_placements(&allowed);
        let directory = directory::create()?;
        let network = Network::set_up(&options.network, &executable, directory.path())?;
        let progress = ProgressBar::new(0).with_style(
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
            progress,
        })
    }

    /// Everything that was asked for, in order, into `contests`.
    fn measure(
        &self,
        subjects: &mut Subjects,
        contests: &mut Vec<Contest>,
    ) -> Result<(), BenchError> {
        let all = self.terms();
        let others = usize::from(self.options.floor) + self.options.peers.len();
        let runs = all.len() * self.options.runs() * (1 + others);
        self.progress.set_length(runs as u64);
        for terms in all {
            if self.options.stop.is_wished() {
                break;
            }
            contests.push(contest::hold(self, subjects, terms)?);
        }
        Ok(())
    }

    fn terms(&self) -> Vec<Terms> {
        let mut all = Vec::new();
        for placement in &self.placements {
            for case in &self.cases {
                match &self.options.work {
                    Work::Profiles(results) => {
                        let profiles = results.iter().filter_map(|result| Profile::of(*result));
                        all.extend(profiles.map(|profile| {
                            Terms::of_profile(&self.options, *case, *placement, profile)
                        }));
                    }
                    _ => all.push(Terms::of_options(&self.options, *case, *placement)),
                }
            }
        }
        all
    }

    fn settings(&self, subjects: &Subjects) -> serde_json::Value {
        let options = &self.options;
        json!({
            "work": match &options.work {
                Work::Load => "load",
                Work::Saturate { .. } => "saturate",
                Work::Profiles(_) => "profiles",
                Work::Max { .. } => "max",
            },
            "outstanding": match options.work {
                Work::Saturate { outstanding } => Some(outstanding),
                _ => None,
            },
            "p99_bound_us": match options.work {
                Work::Max { p99 } => Some(p99.as_micros() as u64),
                _ => None,
            },
            "clients": options.clients,
            "batch": options.batch,
            "rate_hz": options.rate_hz,
            "payload_bytes": options.payload_bytes,
            "uprate_per_s": options.uprate,
            "acknowledge": options.acknowledge,
            "seconds": options.seconds(),
            "warm_up_seconds": options.warm_up_seconds(),
            "runs": options.runs(),
            "router_threads": options.router_threads,
            "placements": self.placements.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "network": self.network.description(),
            "peers": subjects.routers.peer_settings(),
            "document_hardware": profiles::HARDWARE,
        })
    }
}
