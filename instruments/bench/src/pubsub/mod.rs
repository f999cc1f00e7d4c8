//! `bench pubsub`: Publish & Subscribe under load, beside the floor of a fan-out, the source document's figures and
//! live peers.
//!
//! ```text
//!                      ┌▶ subscriber ┐
//! publisher ─▶ server ─┼▶ subscriber ├ one process, one epoll   server: a router, or the floor's relay
//!  by the clock        └▶ subscriber ┘
//! ```
//!
//! From the sockets up: [`session`], [`server`] (publications and events), `sequence` and [`ledger`] (completeness),
//! [`subscribers`], [`publisher`], [`relay`]; [`worker`] (those as processes), [`drivers`] (the processes of one
//! subject), [`round`] (a run's results); [`competitor`] and [`search`] (several subjects), [`lines`] and [`present`].

mod competitor;
mod drivers;
mod goals;
mod instruction_reader;
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
mod server;
mod session;
mod spread;
mod subjects;
mod subscribers;
pub(crate) mod worker;

pub use options::PubSubOptions;
use options::Work;

use serde_json::{Value, json};

use crate::error::BenchError;
use crate::figures::{Figures, Round, Series};
use crate::frame::{
    self, Column, Common, FLOOR, Goal, Host, Instrument, Limit, Section, Site, Stage, Testbed,
    Threads,
};
use crate::machine::Placement;
use crate::process::descriptors;
use crate::report::json::FLOOR_SUSPECT;
use crate::report::table::{number, thousands};

use competitor::{Competitor, MAX_EVENTS_PER_S, Turn, Workload};
use drivers::Rate;
use profiles::Profile;
use round::{BUSY, CPU_PER_EVENT, EVENTS_PER_S, P50, P99};
use subjects::Subjects;

/// Measures, prints to standard output, and writes the results file if requested. Results from before an error are
/// printed and written all the same.
pub fn pubsub(options: PubSubOptions, host: Host) -> Result<bool, BenchError> {
    // All started processes inherit it: a router of thousands needs it as much.
    descriptors::raise();
    frame::run::run(PubSub {
        options: options.on(host)?,
        subjects: Subjects::default(),
        searches: Vec::new(),
    })
}

struct PubSub {
    options: PubSubOptions,
    subjects: Subjects,
    /// The course of each search of a section.
    searches: Vec<String>,
}

/// Maximum variation of the floor's processor time per event between rounds, if it is busy enough for the time to be
/// meaningful.
const FLOOR_SWING_MAX: f64 = 1.3;
const FLOOR_BUSY_MIN: f64 = 0.2;

impl Instrument for PubSub {
    const NAME: &'static str = "pubsub";
    const PLACEMENTS: &'static [Placement] = &[Placement::Split];
    const SPEAKS: bool = true;

    type Case = Workload;
    type Subject = Competitor;

    fn common(&self) -> &Common {
        &self.options.common
    }

    fn start(&mut self, site: &Site) -> Result<(), BenchError> {
        self.subjects = Subjects::start(&self.options, site)?;
        Ok(())
    }

    fn testbed(&self) -> Testbed {
        self.subjects.routers.testbed()
    }

    fn header(&self, _site: &Site) -> Vec<String> {
        present::header(&self.options)
    }

    fn settings(&self, _site: &Site) -> Value {
        let options = &self.options;
        let (work, outstanding, p99_bound_us) = match options.work {
            Work::Load => ("load", None, None),
            Work::Saturate { outstanding } => ("saturate", Some(outstanding), None),
            Work::Profiles(_) => ("profiles", None, None),
            Work::Max { p99 } => ("max", None, Some(p99.as_micros() as u64)),
        };
        json!({
            "work": work,
            "outstanding": outstanding,
            "p99_bound_us": p99_bound_us,
            "clients": options.clients,
            "batch": options.batch,
            "rate_hz": options.rate_hz,
            "payload_bytes": options.payload_bytes,
            "uprate_per_s": options.uprate,
            "acknowledge": options.acknowledge,
            "router_threads": options.routers.own_threads(),
            "nodes": options.nodes,
            "document_hardware": profiles::HARDWARE,
        })
    }

    fn cases(&self) -> Result<Vec<Workload>, BenchError> {
        let mut all = Vec::new();
        for case in self.options.definite_cases()? {
            match &self.options.work {
                Work::Profiles(results) => {
                    let profiles = results.iter().filter_map(|result| Profile::of(*result));
                    let workload = |profile| Workload::of_profile(&self.options, case, profile);
                    all.extend(profiles.map(workload));
                }
                _ => all.push(Workload::of_options(&self.options, case)),
            }
        }
        Ok(all)
    }

    fn threads(&self) -> Threads {
        Threads {
            server: self.options.routers.threads,
            clients: 2,
        }
    }

    fn subjects(
        &mut self,
        stage: &Stage<'_>,
        workload: &Workload,
    ) -> Result<Vec<Competitor>, BenchError> {
        let options = &self.options;
        let present = self
            .subjects
            .of(options, stage, workload.case, workload.payload_bytes)?;
        let connected = present
            .into_iter()
            .enumerate()
            .map(|(at, subject)| Competitor::connect(options, stage, workload, subject, at == 0));
        connected.collect()
    }

    fn round(
        &mut self,
        stage: &Stage<'_>,
        workload: &Workload,
        competitor: &mut Competitor,
    ) -> Round {
        let turn = Turn {
            site: stage.site,
            options: &self.options,
            workload,
        };
        Ok(competitor.round(&turn, &mut self.searches)?)
    }

    /// A floor whose own cost varies has another load beside it, and is no divisor.
    fn end(
        &mut self,
        stage: &Stage<'_>,
        section: &mut Section<Workload>,
        competitors: Vec<Competitor>,
    ) {
        competitors.into_iter().for_each(Competitor::close);
        if stage.site.stop.is_wished() {
            section.said.push("  interrupted".to_owned());
        }
        section.said.append(&mut self.searches);
        let Some(floor) = section.series.iter_mut().find(|one| one.subject == FLOOR) else {
            return;
        };
        let busy = floor.median(BUSY).unwrap_or(0.0);
        if let Some(cpu) = floor.spread(CPU_PER_EVENT)
            && busy >= FLOOR_BUSY_MIN
            && cpu.max / cpu.min > FLOOR_SWING_MAX
        {
            let (min, max) = (number(cpu.min), number(cpu.max));
            floor.suspect = Some(format!(
                "{FLOOR_SUSPECT}: between rounds it took {min} to {max} µs of processor time per event"
            ));
        }
    }

    /// The floor has one thread, for any number of the router's; so many nodes have as many times that.
    fn limit(&self, section: &Section<Workload>, series: &Series) -> Option<Limit> {
        let threads = match (series.subject == FLOOR, self.options.routers.own_threads()) {
            (true, _) => 1,
            (false, Some(own)) => own * spread::nodes_of(&series.subject).unwrap_or(1),
            (false, None) => section.server_cores,
        };
        self.options.work.is_free().then(|| Limit {
            busy: &[BUSY],
            cores: threads.min(section.server_cores) as f64,
        })
    }

    fn comparisons(&self, _site: &Site, section: &Section<Workload>, series: &Series) -> Figures {
        let workload = &section.case;
        let rate_hz = match workload.load.rate {
            Rate::Hz(hz) if !self.options.work.is_free() => Some(hz),
            _ => None,
        };
        let profile = workload.profile.as_ref();
        section
            .over_floor(series, &[P50, P99, MAX_EVENTS_PER_S])
            .with("clients", workload.clients as f64)
            .with("batch", workload.load.batch as f64)
            .with("payload_bytes", workload.payload_bytes as f64)
            .with_known("rate_hz", rate_hz)
            .with_known("document_result", profile.map(|one| one.result as f64))
            .with_known(
                "document_events_per_s",
                profile.map(|one| one.heading_events_per_s),
            )
            .with_known(
                "document_latency_ms",
                profile.and_then(|one| one.latency_ms),
            )
    }

    fn title(&self, section: &Section<Workload>) -> String {
        present::title(&self.options, section)
    }

    fn columns(&self, _terms: &Workload) -> Vec<Column> {
        vec![
            Column::rate("events/s", EVENTS_PER_S, thousands),
            Column::median("avg µs", "latency_avg_us", number),
            Column::spread("p50 µs", P50, number),
            Column::spread("p99 µs", P99, number),
            Column::median("p99.9 µs", "latency_p99_9_us", number),
            Column::largest("max µs", "latency_max_us", number),
            Column::spread("CPU/event µs", CPU_PER_EVENT, number),
            Column::median("busy cores", BUSY, number),
            Column::median("events/read", "events_per_read", number),
            Column::over_floor("p50 ÷ floor", P50),
            Column::over_floor("p99 ÷ floor", P99),
        ]
    }

    fn table(&self, sections: &[&Section<Workload>]) -> Option<Vec<Vec<String>>> {
        let is_of_profiles = matches!(self.options.work, Work::Profiles(_));
        is_of_profiles.then(|| present::profiles(sections, &self.options.others()))
    }

    fn above(&self, _site: &Site, sections: &[&Section<Workload>]) -> Vec<String> {
        let said = sections.iter().flat_map(|section| &section.said);
        said.cloned().collect()
    }

    fn below(&self, _site: &Site, sections: &[&Section<Workload>]) -> Vec<String> {
        present::below(sections)
    }

    /// All results of one case and placement are judged together, with the first of them.
    fn goals(&self, section: &Section<Workload>, before: &[Section<Workload>]) -> Vec<Goal> {
        let is_search = matches!(self.options.work, Work::Max { .. });
        if section.case.profile.is_none() {
            return goals::goals(section, is_search);
        }
        let title = self.title(section);
        let same = before.iter().filter(|other| self.title(other) == title);
        let same: Vec<&Section<Workload>> = same.collect();
        match same.first() {
            Some(first) if first.case == section.case => goals::profile_goals(&same),
            _ => Vec::new(),
        }
    }
}
