//! `bench rpc`: the round trip of a call, beside the floor of the machine, the source document's figure and live peers.
//! In each round callee and caller are fresh processes.

mod baseline;
mod goals;
mod options;
mod present;
pub(crate) mod round;
mod subjects;
pub(crate) mod worker;

pub use options::RpcOptions;

use std::fs;

use serde_json::{Value, json};

use crate::error::BenchError;
use crate::figures::{Figures, Round, Series};
use crate::frame::{
    self, Column, Common, FLOOR, Goal, Host, Instrument, Limit, Section, Site, Stage, Testbed,
    Threads,
};
use crate::report::document;
use crate::report::table::{bytes, number, thousands};
use crate::subject::{Case, Router, RouterOptions, Routers, Socket, Waiting};

use baseline::Baseline;
use round::run;
use subjects::{RpcSubject, ends, plan};

const P50: &str = "rtt_us.p50";
/// Ours with a thread for each core, which is its default, on a single core.
const BY_DEFAULT: &str = "default-threads";
/// Ours, if it does not look for input before it sleeps.
const BLOCKING: &str = "blocking";
const CPU_PER_CALL: &str = "router_cpu_us_per_call";

/// Measures, prints to standard output, and writes the results file if requested.
pub fn rpc(options: RpcOptions, host: Host) -> Result<bool, BenchError> {
    frame::run::run(Rpc {
        options: options.on(host)?,
        routers: Routers::default(),
        by_default: None,
        blocking: None,
    })
}

struct Rpc {
    options: RpcOptions,
    routers: Routers,
    /// Ours with its default number of threads, which most users have.
    by_default: Option<Router>,
    /// Ours without spins, so that their price is measured in one run.
    blocking: Option<Router>,
}

impl Instrument for Rpc {
    const NAME: &'static str = "rpc";
    const SPEAKS: bool = true;

    type Case = Case;
    type Subject = RpcSubject;

    fn common(&self) -> &Common {
        &self.options.common
    }

    fn start(&mut self, site: &Site) -> Result<(), BenchError> {
        let options = &self.options;
        let own = options.routers.own(site, options.spin);
        self.routers = Routers::start(&options.routers, &own, site, &self.cases()?)?;
        let is_plain = !options.common.is_foreign && site.network.description().is_none();
        if options.is_one_call() && is_plain {
            let by_default = RouterOptions {
                threads: None,
                ..own.clone()
            };
            let directory = site.directory.path().join(BY_DEFAULT);
            fs::create_dir(&directory)?;
            self.by_default = Some(Router::start(&by_default, &directory, &site.network)?);
        }
        if own.waiting == Waiting::Usual && is_plain {
            let blocking = RouterOptions {
                waiting: Waiting::Blocking,
                ..own
            };
            let directory = site.directory.path().join(BLOCKING);
            fs::create_dir(&directory)?;
            self.blocking = Some(Router::start(&blocking, &directory, &site.network)?);
        }
        Ok(())
    }

    fn testbed(&self) -> Testbed {
        self.routers.testbed()
    }

    fn header(&self, site: &Site) -> Vec<String> {
        present::header(&self.options, site)
    }

    fn settings(&self, _site: &Site) -> Value {
        let options = &self.options;
        json!({
            "batch": options.batch(),
            "outstanding": options.outstanding,
            "pairs": options.pairs,
            "rate": options.rate,
            "payload_bytes": options.payload_bytes,
            "router_threads": options.routers.own_threads(),
            "spin": options.spin,
            "document_hardware": document::HARDWARE,
        })
    }

    fn cases(&self) -> Result<Vec<Case>, BenchError> {
        self.options.definite_cases()
    }

    fn threads(&self) -> Threads {
        Threads {
            server: self.options.routers.threads,
            clients: self.options.pairs,
        }
    }

    /// The floor comes second: after the router, before any peer.
    fn subjects(&mut self, stage: &Stage<'_>, case: &Case) -> Result<Vec<RpcSubject>, BenchError> {
        let network = &stage.site.network;
        let routers = self.routers.of(*case, &stage.cores.router, network)?;
        let floor = Baseline::start(&self.options, stage, *case)?;
        let mut subjects: Vec<RpcSubject> = routers.into_iter().map(RpcSubject::Router).collect();
        subjects.insert(1.min(subjects.len()), RpcSubject::Floor(floor));
        if let Some(router) = &mut self.blocking {
            let one = router.reachable(BLOCKING, *case, &stage.cores.router, network)?;
            subjects.push(RpcSubject::Router(one));
        }
        let is_wanted = case.socket == Socket::Unix && stage.cores.clients == stage.cores.router;
        if let Some(router) = self.by_default.as_mut().filter(|_| is_wanted) {
            let one = router.reachable(BY_DEFAULT, *case, &stage.cores.router, network)?;
            subjects.push(RpcSubject::Router(one));
        }
        Ok(subjects)
    }

    fn round(&mut self, stage: &Stage<'_>, case: &Case, subject: &mut RpcSubject) -> Round {
        let (options, place) = (&self.options, stage.clients());
        match subject {
            RpcSubject::Floor(floor) => {
                let plan = plan(options, stage, &floor.ends, &place, &floor.processes);
                run(&plan, &mut |_| {})
            }
            RpcSubject::Router(router) => {
                let ends = ends(&router.target, options, stage.at);
                let plan = plan(options, stage, &ends, &place, &router.processes);
                let prefix = case.document_prefix();
                run(&plan, &mut |average_ms| {
                    if options.calls_per_line.is_some() && !router.is_peer {
                        stage.site.say(&document::line(&prefix, average_ms));
                    }
                })
            }
        }
    }

    fn end(&mut self, stage: &Stage<'_>, section: &mut Section<Case>, subjects: Vec<RpcSubject>) {
        for subject in subjects {
            if let RpcSubject::Floor(floor) = subject {
                section.said.push(floor.description());
                let suspicion = floor.suspicion(&self.options, stage, section);
                let mut series = section.series.iter_mut();
                if let Some(series) = series.find(|series| series.subject == FLOOR) {
                    series.suspect = suspicion;
                }
            }
        }
    }

    /// One call at a time waits for the router on purpose.
    fn limit(&self, section: &Section<Case>, _series: &Series) -> Option<Limit> {
        let threads = self.options.routers.own_threads();
        let cores = section.server_cores;
        (self.options.in_flight() > 1).then(|| Limit {
            busy: &["router_busy_cores"],
            cores: threads.map_or(cores, |threads| threads.min(cores)) as f64,
        })
    }

    fn comparisons(&self, _site: &Site, section: &Section<Case>, series: &Series) -> Figures {
        let over_floor = section.over(series, FLOOR, P50);
        let largest = |figure| series.spread(figure).map(|spread| spread.max);
        Figures::new()
            .with_known("calls", series.sum("calls"))
            .with_known("rtt_us.max", largest("rtt_us.max"))
            .with_known("p50_over_floor", over_floor.map(|ratio| ratio.median))
            .with_known("document_rtt_us", document::rtt_us(&section.case))
    }

    // The spread where figures are compared; the tails' own are in the results file, round by round.
    fn columns(&self, _case: &Case) -> Vec<Column> {
        vec![
            Column::sum("calls", "calls", thousands),
            Column::rate("calls/s", "calls_per_s", thousands),
            Column::median("avg µs", "rtt_us.avg", number),
            Column::spread("p50 µs", P50, number),
            Column::median("p99 µs", "rtt_us.p99", number),
            Column::median("p99.9 µs", "rtt_us.p99_9", number),
            Column::largest("max µs", "rtt_us.max", number),
            Column::spread("CPU/call µs", CPU_PER_CALL, number),
            Column::median("memory", "router_pss_bytes", bytes),
            Column::over_floor("p50 ÷ floor", P50),
        ]
    }

    fn below(&self, site: &Site, sections: &[&Section<Case>]) -> Vec<String> {
        let lines = sections.iter();
        lines
            .flat_map(|section| present::below(&self.options, site, section))
            .collect()
    }

    fn goals(&self, section: &Section<Case>, _before: &[Section<Case>]) -> Vec<Goal> {
        goals::goals(&self.options, section)
    }
}
