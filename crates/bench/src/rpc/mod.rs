//! `bench rpc`: the round trip of a call, beside the floor of the machine, the source document's
//! figure and live peers.
//!
//! ```text
//! for each case and placement
//!     for each round      router ▶ floor ▶ peer ▶ router ▶ floor ▶ peer ▶ …
//!         fresh callee and caller processes, warm-up, window, checks
//! ```

mod baseline;
mod present;
mod subjects;

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::time::Duration;

use crosstie_wamp::Serializer;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;

use crate::case::Case;
use crate::document;
use crate::error::BenchError;
use crate::machine::Machine;
use crate::peer::Peer;
use crate::placement::{Cores, Placement, allowed_cores, bind_this_thread};
use crate::report::json::{Build, Frame, Row, metrics, write};
use crate::round::{Ends, Plan, Round, run};
use crate::summary::Measured;
use crate::target::Url;

use baseline::Baseline;
use subjects::{Subject, Subjects};

/// Everything that can be asked of the bench.
#[derive(Clone, Debug)]
pub struct RpcOptions {
    pub build: Build,
    /// The `crosstie` to start as router and workers; by default the one that runs.
    pub executable: Option<PathBuf>,
    /// By default the two pairs of the document.
    pub cases: Vec<Case>,
    /// By default `same-core`, and `split` where there are two cores.
    pub placements: Vec<Placement>,
    /// Measured time of each round.
    pub seconds: f64,
    /// Unmeasured time before it.
    pub warm_up_seconds: f64,
    /// Calls between two lines of the document.
    pub batch: u64,
    /// Calls that each caller keeps in flight.
    pub outstanding: usize,
    /// Pairs of caller and callee, each pair with a procedure of its own.
    pub pairs: usize,
    /// Octets of text in each call, beside its number.
    pub payload_octets: usize,
    pub runs: usize,
    /// Somebody else's router, in place of one that is started.
    pub url: Option<Url>,
    /// The processes of that router: without them its processor time and memory stay unknown,
    /// and it runs where it will.
    pub router_pids: Vec<u32>,
    pub realm: String,
    /// In place of the one that a case or URL would use.
    pub serializer: Option<Serializer>,
    pub peers: Vec<Peer>,
    pub json: Option<PathBuf>,
    /// Starts the router with its busy-poll option.
    pub spin: bool,
    pub router_threads: usize,
}

impl Default for RpcOptions {
    fn default() -> Self {
        Self {
            build: Build::default(),
            executable: None,
            cases: Vec::new(),
            placements: Vec::new(),
            seconds: 1.0,
            warm_up_seconds: 0.3,
            batch: 1000,
            outstanding: 1,
            pairs: 1,
            payload_octets: 0,
            runs: 5,
            url: None,
            router_pids: Vec::new(),
            realm: crate::router::REALM.to_owned(),
            serializer: None,
            peers: Vec::new(),
            json: None,
            spin: false,
            router_threads: 1,
        }
    }
}

/// What `bench rpc` found, as it stands in the JSON frame.
#[derive(Clone, Debug, PartialEq)]
pub struct RpcReport {
    pub rows: Vec<Row>,
}

impl RpcReport {
    /// Whether every round of every subject counts.
    pub fn is_valid(&self) -> bool {
        self.rows.iter().all(|row| row.valid)
    }
}

/// Measures, prints to standard output, and writes the JSON file if one was asked for.
pub fn rpc(options: RpcOptions) -> Result<RpcReport, BenchError> {
    let machine = Machine::now();
    let bench = Bench::new(options)?;
    let mut out = io::stdout();
    let mut subjects = Subjects::start(&bench)?;
    for note in subjects.notes() {
        writeln!(out, "{note}")?;
    }
    let mut sections = Vec::new();
    for placement in &bench.placements {
        for case in &bench.cases {
            sections.push(bench.measure(*case, *placement, &mut subjects)?);
        }
    }
    bench.progress.finish_and_clear();
    present::print(&mut out, &bench, &machine, &subjects, &sections)?;
    let rows: Vec<Row> = sections.iter().flat_map(|section| section.rows(&bench)).collect();
    if let Some(path) = &bench.options.json {
        let frame = Frame {
            bench: "rpc",
            version: &bench.options.build.version,
            commit: &bench.options.build.commit,
            machine: &machine,
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
    executable: PathBuf,
    /// Sockets and node directories live here.
    directory: tempfile::TempDir,
    allowed: Vec<usize>,
    cases: Vec<Case>,
    placements: Vec<Placement>,
    progress: ProgressBar,
}

impl Bench {
    fn new(options: RpcOptions) -> Result<Self, BenchError> {
        let executable = match &options.executable {
            Some(path) => path.clone(),
            None => std::env::current_exe()?,
        };
        let allowed = allowed_cores()?;
        let cases = cases(&options)?;
        let placements = placements(&options, &allowed)?;
        require(options.seconds > 0.0 && options.seconds < 3600.0, "--seconds is above 0")?;
        require((0.0..600.0).contains(&options.warm_up_seconds), "the warm-up is at least 0 s")?;
        require(options.runs > 0, "--runs is at least 1")?;
        require(options.batch > 0, "--batch is at least 1")?;
        require((1..=65_536).contains(&options.outstanding), "--outstanding is 1 to 65,536")?;
        require((1..=1_000).contains(&options.pairs), "--pairs is 1 to 1,000")?;
        require(options.payload_octets <= 8 << 20, "--payload is at most 8 MiB")?;
        require(options.router_threads > 0, "--router-threads is at least 1")?;
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
        let directory = tempfile::Builder::new().prefix("crosstie-bench-").tempdir()?;
        Ok(Self { options, executable, directory, allowed, cases, placements, progress })
    }

    /// All rounds of one case in one placement.
    fn measure(
        &self,
        case: Case,
        placement: Placement,
        subjects: &mut Subjects,
    ) -> Result<Section, BenchError> {
        let options = &self.options;
        let cores = placement
            .cores(&self.allowed, options.router_threads, options.pairs)
            .ok_or_else(|| BenchError::Options(format!("{placement} needs two cores")))?;
        self.step_aside(&cores)?;
        let present = subjects.of(case, &cores)?;
        let baseline = Baseline::start(self, case, &cores)?;
        let capacity = cores.router.len().min(options.router_threads) as f64;
        let mut measured: Vec<Measured> =
            present.iter().map(|subject| Measured::new(&subject.name, capacity)).collect();
        let mut floor = Measured::new("floor", capacity);
        for at in 0..options.runs {
            for (subject, measured) in present.iter().zip(&mut measured) {
                let shown = subject.shows_lines.then(|| case.document_prefix());
                let round = self.round(subject, &cores, &format!("{case} {placement}"), at, shown);
                measured.rounds.push(round);
                // The floor comes second: beside the router, before any peer.
                if floor.rounds.len() == at {
                    self.announce("floor", &format!("{case} {placement}"), at);
                    let plan = self.plan(&baseline.ends, &cores, &baseline.processes);
                    floor.rounds.push(run(&plan, &mut |_| {}));
                    self.progress.inc(1);
                }
            }
        }
        floor.suspect = baseline.suspicion(self, case, placement, &floor);
        measured.insert(1.min(measured.len()), floor);
        bind_this_thread(&self.allowed)?;
        Ok(Section { case, placement, floor: baseline.description(), measured })
    }

    fn round(
        &self,
        subject: &Subject,
        cores: &Cores,
        what: &str,
        at: usize,
        prefix: Option<String>,
    ) -> Round {
        self.announce(&subject.name, what, at);
        let ends = subject.ends(&self.options, at);
        let plan = self.plan(&ends, cores, &subject.processes);
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

    fn plan<'a>(&'a self, ends: &'a [Ends], cores: &'a Cores, subject: &'a [u32]) -> Plan<'a> {
        Plan {
            executable: &self.executable,
            ends,
            cores: &cores.clients,
            subject,
            warm_up: Duration::from_secs_f64(self.options.warm_up_seconds),
            measured: Duration::from_secs_f64(self.options.seconds),
        }
    }

    fn announce(&self, subject: &str, what: &str, at: usize) {
        if io::stderr().is_terminal() {
            self.progress
                .set_message(format!("{what}: {subject}, round {}/{}", at + 1, self.options.runs));
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

    fn settings(&self, subjects: &Subjects) -> serde_json::Value {
        let options = &self.options;
        json!({
            "seconds": options.seconds,
            "warm_up_seconds": options.warm_up_seconds,
            "batch": options.batch,
            "outstanding": options.outstanding,
            "pairs": options.pairs,
            "payload_bytes": options.payload_octets,
            "runs": options.runs,
            "router_threads": options.router_threads,
            "spin": options.spin,
            "placements": self.placements.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "peers": subjects.peer_settings(),
            "document_hardware": document::HARDWARE,
        })
    }
}

/// One case in one placement, measured.
struct Section {
    case: Case,
    placement: Placement,
    /// What kind of relay the floor was.
    floor: String,
    /// The router, the floor, then peers.
    measured: Vec<Measured>,
}

impl Section {
    fn floor(&self) -> Option<&Measured> {
        self.measured.iter().find(|measured| measured.subject == "floor")
    }

    fn rows(&self, bench: &Bench) -> Vec<Row> {
        let mut rows = Vec::new();
        for measured in &self.measured {
            let row = |round, metrics, fault: Option<String>| Row {
                case: self.case.to_string(),
                subject: measured.subject.clone(),
                placement: Some(self.placement.to_string()),
                round,
                metrics,
                valid: fault.is_none(),
                why: fault.unwrap_or_default(),
            };
            for (at, round) in measured.rounds.iter().enumerate() {
                rows.push(row(Some(at + 1), metrics(&round.metrics), round.fault.clone()));
            }
            let why = measured.why();
            let mut sum = row(None, measured.metrics(), (!measured.is_valid()).then_some(why));
            if let Some(fields) = sum.metrics.as_object_mut() {
                fields.extend(self.comparisons(bench, measured));
            }
            rows.push(sum);
        }
        rows
    }

    /// What only the sum of the rounds can say.
    fn comparisons(
        &self,
        bench: &Bench,
        measured: &Measured,
    ) -> Vec<(String, serde_json::Value)> {
        let mut fields = Vec::new();
        if let Some(over_floor) = self.over_floor(measured) {
            fields.push(("p50_over_floor".to_owned(), json!(over_floor.median)));
        }
        if let Some(document_us) = document::rtt_us(&self.case) {
            fields.push(("document_rtt_us".to_owned(), json!(document_us)));
        }
        if bench.in_flight() > 1 {
            let bound = measured.driver_bound(bench.in_flight());
            fields.push(("driver_bound".to_owned(), json!(bound)));
        }
        fields
    }

    /// `None` for the floor itself, and beside a floor that does not count.
    fn over_floor(&self, measured: &Measured) -> Option<crate::histogram::Spread> {
        let floor = self.floor().filter(|floor| floor.suspect.is_none())?;
        if measured.subject == floor.subject { None } else { measured.p50_over(floor) }
    }
}

impl Bench {
    fn in_flight(&self) -> usize {
        self.options.outstanding * self.options.pairs
    }
}

fn require(held: bool, rule: &str) -> Result<(), BenchError> {
    if held { Ok(()) } else { Err(BenchError::Options(rule.to_owned())) }
}

fn cases(options: &RpcOptions) -> Result<Vec<Case>, BenchError> {
    if let Some(url) = &options.url {
        let usual = if url.websocket { Serializer::Json } else { Serializer::MsgPack };
        let url_case = url.case(options.serializer.unwrap_or(usual), false);
        let fits = |case: &&Case| {
            case.socket == url_case.socket
                && case.transport.is_websocket() == url_case.transport.is_websocket()
        };
        if options.cases.is_empty() {
            return Ok(vec![url_case]);
        }
        if let Some(case) = options.cases.iter().find(|case| !fits(case)) {
            return Err(BenchError::Options(format!("{case} is not what that URL speaks")));
        }
        return Ok(options.cases.clone());
    }
    require(options.router_pids.is_empty(), "--router-pid goes with --url")?;
    let mut cases = match options.cases.is_empty() {
        true => Case::OF_THE_DOCUMENT.to_vec(),
        false => options.cases.clone(),
    };
    if let Some(serializer) = options.serializer {
        require(options.cases.is_empty(), "a --case names its own serializer")?;
        cases.iter_mut().for_each(|case| case.serializer = serializer);
    }
    Ok(cases)
}

fn placements(options: &RpcOptions, allowed: &[usize]) -> Result<Vec<Placement>, BenchError> {
    if !options.placements.is_empty() {
        return Ok(options.placements.clone());
    }
    Ok(match allowed.len() {
        1 => vec![Placement::SameCore],
        _ => vec![Placement::SameCore, Placement::Split],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_that_contradict_each_other_are_refused() {
        #[track_caller]
        fn check(change: fn(&mut RpcOptions), expected: Result<&str, &str>) {
            let mut options = RpcOptions::default();
            change(&mut options);
            let found = Bench::new(options).map(|bench| {
                bench.cases.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
            });
            match (found, expected) {
                (Ok(cases), Ok(expected)) => assert_eq!(cases, expected),
                (Err(error), Err(expected)) => {
                    let error = error.to_string();
                    assert!(error.contains(expected), "{error}");
                }
                (found, expected) => panic!("{found:?} instead of {expected:?}"),
            }
        }
        check(|_| (), Ok("uds-rawsocket-msgpack tcp-websocket-json"));
        check(
            |o| o.serializer = Some(Serializer::Cbor),
            Ok("uds-rawsocket-cbor tcp-websocket-cbor"),
        );
        check(|o| o.cases = vec!["tcp-rawsocket-json".parse().unwrap()], Ok("tcp-rawsocket-json"));
        check(|o| o.url = "ws://127.0.0.1:1/ws".parse().ok(), Ok("tcp-websocket-json"));
        check(|o| o.url = "rs+unix:///x".parse().ok(), Ok("uds-rawsocket-msgpack"));
        check(
            |o| {
                o.url = "rs+unix:///x".parse().ok();
                o.cases = Case::OF_THE_DOCUMENT.to_vec();
            },
            Err("tcp-websocket-json is not what that URL speaks"),
        );
        check(|o| o.router_pids = vec![1], Err("--router-pid goes with --url"));
        check(|o| o.runs = 0, Err("--runs"));
        check(|o| o.seconds = 0.0, Err("--seconds"));
        check(|o| o.seconds = f64::NAN, Err("--seconds"));
        check(|o| o.outstanding = 0, Err("--outstanding"));
        check(|o| o.payload_octets = 1 << 30, Err("--payload"));
    }
}
