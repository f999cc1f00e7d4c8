//! `bench footprint`: what the router costs before it routes anything. Start to first accept,
//! memory at rest, memory per idle session, size of the binary.
//!
//! The memory of a session is a difference between two sizes of the same process, so that what
//! the first session alone makes it allocate is in neither.

mod present;

use std::io;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use serde_json::json;

use crate::error::BenchError;
use crate::load::histogram::Spread;
use crate::machine::Machine;
use crate::machine::accounting::{Memory, kernel_memory};
use crate::machine::placement::allowed_cores;
use crate::network::{Network, NetworkOptions};
use crate::process::crew::Crew;
use crate::process::directory;
use crate::process::place::Place;
use crate::report::json::{Build, Frame, Row, metrics, write};
use crate::subject::case::Case;
use crate::subject::router::{Router, RouterOptions};
use crate::wamp::holder::{self, HolderOrder, Instruction, Report};

/// Everything that can be asked of the bench.
#[derive(Clone, Debug)]
pub struct FootprintOptions {
    pub build: Build,
    /// The `crosstie` to start; by default the one that runs.
    pub executable: Option<PathBuf>,
    /// Numbers of sessions to hold, growing; memory per session is between the first and the last.
    pub sessions: Vec<usize>,
    /// All sessions subscribe one topic, instead of each its own: the topic's own memory is then
    /// in no session's.
    pub shared_topic: bool,
    /// By default RawSocket with MessagePack over a Unix socket, WebSocket with JSON over TCP.
    pub cases: Vec<Case>,
    /// Starts to take the time of.
    pub starts: usize,
    pub router_threads: usize,
    pub json: Option<PathBuf>,
}

impl Default for FootprintOptions {
    fn default() -> Self {
        Self {
            build: Build::default(),
            executable: None,
            sessions: vec![1_000, 5_000, 10_000, 15_000],
            shared_topic: false,
            cases: Vec::new(),
            starts: 10,
            router_threads: 1,
            json: None,
        }
    }
}

/// What `bench footprint` found, as it stands in the JSON frame.
#[derive(Clone, Debug, PartialEq)]
pub struct FootprintReport {
    pub rows: Vec<Row>,
}

/// Measures, prints to standard output, and writes the JSON file if one was asked for.
pub fn footprint(options: FootprintOptions) -> Result<FootprintReport, BenchError> {
    let machine = Machine::now();
    let bench = Bench::new(options)?;
    let mut figures = Figures {
        start_ms: bench.starts()?,
        ..Figures::default()
    };
    figures.binary_bytes = std::fs::metadata(&bench.router.executable)?.len();
    for case in &bench.cases {
        let held = bench.hold(*case)?;
        figures.idle.get_or_insert(held.idle);
        figures.held.push(held);
    }
    bench.progress.finish_and_clear();
    present::print(&mut io::stdout(), &bench, &machine, &figures)?;
    let rows = figures.rows();
    if let Some(path) = &bench.options.json {
        let options = &bench.options;
        let settings = json!({
            "starts": options.starts,
            "sessions": options.sessions,
            "shared_topic": options.shared_topic,
            "router_threads": options.router_threads,
        });
        let frame = Frame {
            bench: "footprint",
            version: &options.build.version,
            commit: &options.build.commit,
            machine: &machine,
            settings,
            results: rows.clone(),
            verdicts: Vec::new(),
        };
        write(path, &frame)?;
    }
    Ok(FootprintReport { rows })
}

struct Bench {
    options: FootprintOptions,
    router: RouterOptions,
    directory: tempfile::TempDir,
    cores: Vec<usize>,
    cases: Vec<Case>,
    progress: ProgressBar,
}

#[derive(Default)]
struct Figures {
    start_ms: Vec<f64>,
    idle: Option<Memory>,
    held: Vec<Held>,
    binary_bytes: u64,
}

/// Memory at each number of sessions.
struct Held {
    case: Case,
    idle: Memory,
    steps: Vec<Step>,
}

#[derive(Clone, Copy, Debug, Serialize)]
struct Step {
    sessions: usize,
    router_pss_bytes: u64,
    router_rss_bytes: u64,
    /// Of both ends of each connection, and of everything else that the machine does meanwhile.
    kernel_bytes: u64,
}

impl Held {
    fn per_session(&self, figure: fn(&Step) -> u64) -> Option<f64> {
        let (first, last) = (self.steps.first()?, self.steps.last()?);
        let sessions = last
            .sessions
            .checked_sub(first.sessions)
            .filter(|count| *count > 0)?;
        Some((figure(last) as f64 - figure(first) as f64) / sessions as f64)
    }

    fn router_bytes_per_session(&self) -> Option<f64> {
        self.per_session(|step| step.router_pss_bytes)
    }

    /// Of the router's end alone: half of both.
    fn kernel_bytes_per_session(&self) -> Option<f64> {
        self.per_session(|step| step.kernel_bytes)
            .map(|bytes| bytes / 2.0)
    }
}

/// For the allocator and the router's own threads to come to rest.
const SETTLING: Duration = Duration::from_millis(300);

/// How long the opening of all sessions may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// One source address has some 28,000 ports, and one process 20,000 descriptors on a common
/// limit: a holder takes this many at most.
const SESSIONS_PER_HOLDER: usize = 10_000;

impl Bench {
    fn new(options: FootprintOptions) -> Result<Self, BenchError> {
        let refuse = |why: &str| Err(BenchError::Options(why.to_owned()));
        let growing = options.sessions.is_sorted_by(|a, b| a < b);
        if options.sessions.len() < 2 || !growing || options.sessions[0] == 0 {
            return refuse("--sessions takes two or more growing numbers above 0");
        }
        // The router's own descriptors have the same limit, and every session takes one there.
        if options
            .sessions
            .last()
            .is_some_and(|most| *most > holder::sessions_max())
        {
            return refuse("--sessions is beyond this machine's limit of descriptors per process");
        }
        if options.starts == 0 || options.router_threads == 0 {
            return refuse("--runs and --router-threads are at least 1");
        }
        let executable = match &options.executable {
            Some(path) => path.clone(),
            None => std::env::current_exe()?,
        };
        let cases = match options.cases.is_empty() {
            true => Case::OF_THE_DOCUMENT.to_vec(),
            false => options.cases.clone(),
        };
        let steps = options.starts + cases.len() * (1 + options.sessions.len());
        let progress = ProgressBar::new(steps as u64);
        progress.set_style(
            ProgressStyle::with_template("{bar:30} {pos}/{len} {msg}")
                .unwrap_or_else(|_| ProgressStyle::default_bar()),
        );
        Ok(Self {
            router: RouterOptions {
                executable,
                threads: options.router_threads,
                spin: false,
            },
            options,
            directory: directory::create()?,
            cores: allowed_cores()?,
            cases,
            progress,
        })
    }

    /// Milliseconds from spawn until both sockets accept, start by start.
    fn starts(&self) -> Result<Vec<f64>, BenchError> {
        self.progress.set_message("start to first accept");
        let mut starts = Vec::new();
        for _ in 0..self.options.starts {
            let (_router, took) = Router::start_timed(&self.router, self.directory.path())?;
            starts.push(took.as_secs_f64() * 1e3);
            self.progress.inc(1);
        }
        Ok(starts)
    }

    /// Opens sessions in steps on a fresh router.
    fn hold(&self, case: Case) -> Result<Held, BenchError> {
        self.progress.set_message(format!("idle sessions, {case}"));
        let directory = self.directory.path();
        let plain = NetworkOptions::default();
        let network = Network::set_up(&plain, &self.router.executable, directory)?;
        let router = Router::start(&self.router, directory, &network)?;
        let process = [router.process.id()];
        std::thread::sleep(SETTLING);
        let idle = Memory::of(&process)?;
        self.progress.inc(1);
        let mut holders = self.holders(case, &router)?;
        let mut steps = Vec::new();
        for sessions in &self.options.sessions {
            grow(&mut holders, *sessions)?;
            std::thread::sleep(SETTLING);
            let memory = Memory::of(&process)?;
            steps.push(Step {
                sessions: *sessions,
                router_pss_bytes: memory.pss,
                router_rss_bytes: memory.rss,
                kernel_bytes: kernel_memory(),
            });
            self.progress.inc(1);
        }
        Ok(Held { case, idle, steps })
    }

    fn holders(&self, case: Case, router: &Router) -> Result<Vec<Crew<Report>>, BenchError> {
        let most = self.options.sessions.last().copied().unwrap_or(0);
        let count = most.div_ceil(SESSIONS_PER_HOLDER.min(holder::sessions_max()));
        let mut holders = Vec::new();
        for at in 0..count {
            let order = HolderOrder {
                target: router.listening.target(case),
                source: source(at),
                shared_topic: self.options.shared_topic,
                topic_prefix: format!("crosstie.bench.p{}.h{at}", std::process::id()),
            };
            let mut holder = Crew::default();
            let place = Place::on(&self.cores);
            holder.hire(&self.router.executable, holder::ROLE, &place, &order)?;
            expect(&holder, |report| *report == Report::Ready)?;
            holders.push(holder);
        }
        Ok(holders)
    }
}

/// 127.0.0.1, 127.0.0.2, …
fn source(at: usize) -> Ipv4Addr {
    Ipv4Addr::new(127, 0, 0, u8::try_from(at % 250).unwrap_or(0) + 1)
}

/// Shares `sessions` out among the holders and waits until they are held.
fn grow(holders: &mut [Crew<Report>], sessions: usize) -> Result<(), BenchError> {
    let count = holders.len();
    for (at, holder) in holders.iter_mut().enumerate() {
        let share = sessions / count + usize::from(at < sessions % count);
        holder.tell(0, &Instruction::Hold { sessions: share });
        expect(holder, |report| {
            *report == Report::Holding { sessions: share }
        })?;
    }
    Ok(())
}

fn expect(holder: &Crew<Report>, expected: impl Fn(&Report) -> bool) -> Result<(), BenchError> {
    match holder.next(Instant::now() + PATIENCE) {
        Some((_, report)) if expected(&report) => Ok(()),
        Some((_, Report::Failed { why })) => Err(BenchError::Holder(why)),
        Some((_, other)) => Err(BenchError::Holder(format!("{other:?}"))),
        None => Err(BenchError::Holder(format!(
            "no word within {} s",
            PATIENCE.as_secs()
        ))),
    }
}

impl Figures {
    fn rows(&self) -> Vec<Row> {
        let row = |case: String, metrics| Row {
            case,
            subject: "crosstie".to_owned(),
            placement: None,
            round: None,
            metrics,
            valid: true,
            why: String::new(),
        };
        let mut rows = Vec::new();
        if let Some(Spread { median, min, max }) = Spread::of(self.start_ms.iter().copied()) {
            let start = json!({ "start_ms": { "median": median, "min": min, "max": max } });
            rows.push(row("start".to_owned(), start));
        }
        if let Some(Memory { pss, rss }) = self.idle {
            let idle = json!({ "router_pss_bytes": pss, "router_rss_bytes": rss });
            rows.push(row("idle".to_owned(), idle));
        }
        for held in &self.held {
            let session = json!({
                "router_bytes_per_session": held.router_bytes_per_session(),
                "kernel_bytes_per_session": held.kernel_bytes_per_session(),
                "steps": metrics(&held.steps),
            });
            rows.push(row(held.case.to_string(), session));
        }
        rows.push(row(
            "binary".to_owned(),
            json!({ "binary_bytes": self.binary_bytes }),
        ));
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_costs_the_difference() {
        let step = |sessions, pss, kernel| Step {
            sessions,
            router_pss_bytes: pss,
            router_rss_bytes: pss,
            kernel_bytes: kernel,
        };
        let held = Held {
            case: Case::OF_THE_DOCUMENT[0],
            idle: Memory::default(),
            steps: vec![
                step(1_000, 5_000_000, 0),
                step(2_000, 0, 0),
                step(11_000, 15_000_000, 60_000_000),
            ],
        };
        assert_eq!(held.router_bytes_per_session(), Some(1_000.0));
        assert_eq!(held.kernel_bytes_per_session(), Some(3_000.0));
    }

    #[test]
    fn options_that_cannot_be_met_are_refused() {
        #[track_caller]
        fn check(sessions: &[usize], expected: Option<&str>) {
            let options = FootprintOptions {
                sessions: sessions.to_vec(),
                ..FootprintOptions::default()
            };
            let error = Bench::new(options).err().map(|error| error.to_string());
            match (error, expected) {
                (None, None) => {}
                (Some(error), Some(expected)) => assert!(error.contains(expected), "{error}"),
                (error, expected) => panic!("{error:?} instead of {expected:?}"),
            }
        }
        check(&[10, 20], None);
        check(&[10], Some("two or more"));
        check(&[20, 10], Some("growing"));
        check(&[10, 10], Some("growing"));
        check(&[0, 10], Some("above 0"));
        check(&[10, usize::MAX], Some("descriptors"));
    }

    #[test]
    fn holders_have_addresses_of_their_own() {
        assert_eq!(source(0), Ipv4Addr::new(127, 0, 0, 1));
        assert_eq!(source(3), Ipv4Addr::new(127, 0, 0, 4));
    }
}
