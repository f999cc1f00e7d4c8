//! `bench handshake --scaling`: the source document's table of one, two and four cores, against our own testee. Each
//! number of workers is warmed up, then measured three times without a restart.

use serde_json::{Value, json};

use super::analysis::Analysis;
use super::options::HandshakeOptions;
use super::run::{Run, RunOptions, run};
use super::servers::{Ground, Servers};
use crate::error::BenchError;
use crate::figures::{DRIVER_BOUND, Figures, Round};
use crate::frame::{self, Common, Instrument, OWN, Section, Site, Stage, Subject, require};
use crate::machine::{allowed_cores, bind_this_thread};
use crate::report::table::{UNKNOWN, known, spread, thousands};

struct Scaling {
    common: Common,
    /// Numbers of workers, one row each.
    workers: Vec<usize>,
    /// In each run, with the document's threads and marks of wsperf.
    run: RunOptions,
    /// Connections before the first run.
    warm_up: u64,
    cores: usize,
}

/// The document's three runs on as many cores: handshakes/s, and the median in ms.
const DOCUMENT: [(usize, [(f64, f64); 3]); 3] = [
    (1, [(9046.0, 128.4), (8938.0, 129.7), (8973.0, 134.4)]),
    (2, [(13_334.0, 75.2), (13_526.0, 73.8), (13_438.0, 74.3)]),
    (4, [(14_073.0, 44.3), (13_588.0, 40.1), (14_035.0, 40.8)]),
];

/// The document's hardware.
const HARDWARE: &str = "Autobahn for Python on PyPy, a Core i7, driven by wsperf on the same cores";

const RATE: &str = "handshakes_per_s";
const MEDIAN_MS: &str = "open_median_ms";

/// Measures and prints. Returns whether all results count.
pub(super) fn scaling(options: &HandshakeOptions, mut common: Common) -> Result<bool, BenchError> {
    let sensible = options.scaling.iter().all(|w| (1..=256).contains(w));
    require(sensible, "--scaling takes numbers of workers, 1 to 256")?;
    let (threads, low, high) = (8, 1_000, 2_000);
    let run = RunOptions {
        threads,
        connections: options.scaling_connections,
        low,
        high,
        seconds_max: None,
        timeout_s: options.timeout_s,
    };
    run.check()?;
    common.runs = options.servers.usual.rounds.runs.unwrap_or(3);
    frame::run::run(Scaling {
        common,
        workers: options.scaling.clone(),
        run,
        warm_up: options.scaling_connections.div_ceil(4),
        cores: allowed_cores()?.len(),
    })
}

/// Workers that leave the driver no core of its own would only show the driver's rest.
fn driver_bound(workers: usize, cores: usize) -> Option<String> {
    (workers >= cores).then(|| {
        format!("{DRIVER_BOUND}: {workers} workers and a driver need more than {cores} cores")
    })
}

/// Our testee with a number of workers.
#[derive(Clone)]
struct Workers(usize);

impl std::fmt::Display for Workers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "workers-{}", self.0)
    }
}

/// The testee, running and warmed up.
struct Testee(Servers);

impl Subject for Testee {
    fn name(&self) -> &str {
        OWN
    }
}

impl Scaling {
    fn run(
        &self,
        site: &Site,
        workers: usize,
        at: usize,
        testee: &Testee,
    ) -> Result<Run, BenchError> {
        let load = match at {
            0 => RunOptions {
                connections: self.warm_up,
                ..self.run
            },
            _ => self.run,
        };
        // The drivers are threads of this process.
        bind_this_thread(&site.allowed[workers..])?;
        let target = &testee.0.servers[0].target;
        run(target, &load, &mut |done| {
            let what = if at == 0 {
                "warm-up".to_owned()
            } else {
                format!("run {at}")
            };
            site.announce(format!("{workers} workers, {what}: {done}"));
        })
    }
}

impl Instrument for Scaling {
    const NAME: &'static str = "handshake";
    const PLACEMENTS: &'static [crate::machine::Placement] = &[];
    const IS_PLACED: bool = false;
    const IS_TIMED: bool = false;
    const SPEAKS: bool = true;

    type Case = Workers;
    type Subject = Testee;

    fn common(&self) -> &Common {
        &self.common
    }

    fn header(&self, _site: &Site) -> Vec<String> {
        vec![format!(
            "Load: {} runs of {} connections, {} threads, {} to {} handshakes in flight, after {} \
             connections of warm-up; median, below it smallest–largest",
            self.common.runs,
            thousands(self.run.connections as f64),
            self.run.threads,
            thousands(self.run.low as f64),
            thousands(self.run.high as f64),
            thousands(self.warm_up as f64),
        )]
    }

    fn settings(&self, _site: &Site) -> Value {
        json!({
            "scaling": self.workers,
            "connections": self.run.connections,
            "threads": self.run.threads,
            "low": self.run.low,
            "high": self.run.high,
            "warm_up_connections": self.warm_up,
            "document_hardware": HARDWARE,
        })
    }

    fn cases(&self) -> Result<Vec<Workers>, BenchError> {
        Ok(self.workers.iter().copied().map(Workers).collect())
    }

    fn left_out(&self, case: &Workers) -> Option<String> {
        driver_bound(case.0, self.cores)
    }

    fn subjects(&mut self, stage: &Stage<'_>, case: &Workers) -> Result<Vec<Testee>, BenchError> {
        let ground = Ground {
            cores: &stage.site.allowed[..case.0],
            ..Ground::of(stage.site)
        };
        let testee = Testee(Servers::testee(&ground, case.0)?);
        self.run(stage.site, case.0, 0, &testee)?;
        Ok(vec![testee])
    }

    fn round(&mut self, stage: &Stage<'_>, case: &Workers, testee: &mut Testee) -> Round {
        let made = self.run(stage.site, case.0, stage.at + 1, testee);
        let made = made.map_err(|error| error.to_string())?;
        let analysis = Analysis::of(std::slice::from_ref(&made.log));
        stage.site.say(analysis.to_string().trim_end());
        match made.fault() {
            Some(fault) => Err(fault.into()),
            None => Ok(Figures::new()
                .with(RATE, analysis.handshakes_per_s())
                .with_known(MEDIAN_MS, analysis.median_ms())),
        }
    }

    fn title(&self, _section: &Section<Workers>) -> String {
        "Numbers of workers".to_owned()
    }

    fn table(&self, sections: &[&Section<Workers>]) -> Option<Vec<Vec<String>>> {
        let heads = [
            "workers",
            "handshakes/s",
            "median ms",
            "÷ 1 worker",
            "document",
            "median ms",
            "÷ 1 worker",
        ];
        let rows = sections.iter().filter_map(|section| row(section, sections));
        let heads = heads.map(str::to_owned).to_vec();
        Some([heads].into_iter().chain(rows).collect())
    }

    fn below(&self, _site: &Site, _sections: &[&Section<Workers>]) -> Vec<String> {
        vec![format!("  document: means of its three runs; {HARDWARE}")]
    }
}

fn row(section: &Section<Workers>, all: &[&Section<Workers>]) -> Option<Vec<String>> {
    let (workers, series) = (section.case.0, section.own()?);
    let rate = match series.suspect {
        Some(_) => DRIVER_BOUND.to_owned(),
        None => spread(series.spread(RATE), thousands),
    };
    let one = all.iter().find(|section| section.case.0 == 1);
    let one = one.and_then(|one| one.own()?.median(RATE));
    let over_one = series.median(RATE).zip(one);
    let ratio = |(rate, one): (f64, f64)| format!("{:.2}", rate / one);
    let ms = |ms: f64| format!("{ms:.1}");
    let document_rate = |workers| document(workers).map(|(rate, _)| rate);
    let document_over_one = document_rate(workers).zip(document_rate(1));
    Some(vec![
        workers.to_string(),
        rate,
        spread(series.spread(MEDIAN_MS), ms),
        over_one.map_or_else(|| UNKNOWN.to_owned(), ratio),
        known(document_rate(workers), thousands),
        known(document(workers).map(|(_, ms)| ms), ms),
        document_over_one.map_or_else(|| "not given".to_owned(), ratio),
    ])
}

/// Means of the document's runs.
fn document(workers: usize) -> Option<(f64, f64)> {
    let (_, runs) = DOCUMENT.iter().find(|(on, _)| *on == workers)?;
    let mean =
        |figure: fn(&(f64, f64)) -> f64| runs.iter().map(figure).sum::<f64>() / runs.len() as f64;
    Some((mean(|run| run.0), mean(|run| run.1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documents_figures() {
        #[track_caller]
        fn check(workers: usize, rate: f64, median_ms: f64) {
            let (found_rate, found_ms) = document(workers).unwrap();
            assert!((found_rate - rate).abs() < 1.0, "{found_rate}");
            assert!((found_ms - median_ms).abs() < 0.1, "{found_ms}");
        }
        check(1, 8986.0, 130.8);
        check(2, 13_433.0, 74.4);
        check(4, 13_899.0, 41.7);
        assert_eq!(document(3), None);
    }

    #[test]
    fn workers_leave_the_driver_a_core() {
        assert!(driver_bound(1, 2).is_none());
        assert!(driver_bound(2, 2).is_some_and(|why| why.starts_with("driver-bound")));
        assert!(driver_bound(4, 8).is_none());
        assert!(driver_bound(1, 1).is_some());
    }
}
