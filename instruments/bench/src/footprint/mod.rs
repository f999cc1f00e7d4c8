//! `bench footprint`: the cost of the router before it routes anything. Time from start to first accept, memory at
//! rest, memory per idle session, size of the binary.
//!
//! The memory of a session is a difference between two sizes of the same process, so that the allocations of the first
//! session are in neither.

mod present;

use std::fmt;
use std::net::Ipv4Addr;
use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};

use crate::error::BenchError;
use crate::figures::{Fault, Figures, Round};
use crate::frame::{
    self, Bound, Common, FileOptions, Goal, Host, Instrument, OWN, Section, Site, Stage, chosen,
    instrument, require,
};
use crate::load::Spread;
use crate::machine::{Memory, Placement, kernel_memory};
use crate::process::Workers;
use crate::report::json::metrics;
use crate::subject::{Case, Router, RouterOptions, Transport, Waiting, own_program};
use crate::wamp::holder::{self, HolderOrder, HolderReport, Instruction};

/// The options of `bench footprint`.
#[derive(Clone, Debug, clap::Args)]
pub struct FootprintOptions {
    /// There is one round.
    #[arg(skip)]
    common: Common,
    /// Increasing numbers of sessions to hold; memory per session is the difference of the first and the last.
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "1000,5000,10000,15000",
        value_name = "N,…"
    )]
    sessions: Vec<usize>,
    /// Number of measured starts.
    #[arg(long, default_value_t = 10, value_name = "N")]
    starts: usize,
    /// As in bench rpc; may be repeated.
    #[arg(long = "case", value_name = "CASE")]
    cases: Vec<Case>,
    /// Threads of the started router.
    #[arg(long, default_value_t = 1, value_name = "N")]
    router_threads: usize,
    #[command(flatten)]
    file: FileOptions,
}

/// Measures, prints to standard output, and writes the results file if requested.
pub fn footprint(mut options: FootprintOptions, host: Host) -> Result<bool, BenchError> {
    options.common = Common {
        runs: 1,
        ..options.file.common(host)?
    };
    options.check()?;
    frame::run::run(Footprint {
        options,
        held: Vec::new(),
    })
}

struct Footprint {
    options: FootprintOptions,
    /// Memory by sessions, case by case.
    held: Vec<Held>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Part {
    Start,
    Idle,
    Sessions(Case),
    Binary,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Start => f.write_str("start"),
            Self::Idle => f.write_str("idle"),
            Self::Sessions(case) => case.fmt(f),
            Self::Binary => f.write_str("binary"),
        }
    }
}

/// The router, which is the only subject.
struct Own;

impl instrument::Subject for Own {
    fn name(&self) -> &str {
        OWN
    }
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
    /// For both ends of each connection, and for all other use of the machine meanwhile.
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

    /// For the router's end alone: half of both.
    fn kernel_bytes_per_session(&self) -> Option<f64> {
        self.per_session(|step| step.kernel_bytes)
            .map(|bytes| bytes / 2.0)
    }
}

/// Time for the allocator and the router's own threads to come to rest. Each second some of these look at all connections,
/// and code that runs first then is mapped first then.
const SETTLING: Duration = Duration::from_millis(1_500);

/// How long the opening of all sessions may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// One source address has some 28,000 ports, and one process 20,000 descriptors on a common limit: maximum number of
/// sessions of a holder.
const SESSIONS_PER_HOLDER: usize = 10_000;

impl FootprintOptions {
    fn check(&self) -> Result<(), BenchError> {
        let growing = self.sessions.is_sorted_by(|a, b| a < b);
        require(
            self.sessions.len() >= 2 && growing && self.sessions[0] > 0,
            "--sessions takes two or more growing numbers above 0",
        )?;
        // The router's own descriptors have the same limit, and every session uses one there.
        let most = self.sessions.last().copied().unwrap_or(0);
        require(
            most <= holder::sessions_max(),
            "--sessions is beyond this machine's limit of descriptors per process",
        )?;
        require(
            self.starts > 0 && self.router_threads > 0,
            "--starts and --router-threads are at least 1",
        )
    }
}

impl Footprint {
    fn router(&self, site: &Site) -> RouterOptions {
        RouterOptions {
            executable: site.executable.clone(),
            threads: Some(self.options.router_threads),
            waiting: Waiting::Usual,
            compresses: Case::any_deflated(&self.options.cases),
        }
    }

    fn look(&mut self, site: &Site, part: Part) -> Result<Figures, BenchError> {
        match part {
            Part::Start => self.starts(site),
            Part::Idle => {
                let (_router, memory) = self.at_rest(site)?;
                Ok(Figures::new()
                    .with("router_pss_bytes", memory.pss as f64)
                    .with("router_rss_bytes", memory.rss as f64))
            }
            Part::Sessions(case) => self.hold(site, case),
            Part::Binary => {
                let bytes = std::fs::metadata(own_program()?)?.len();
                Ok(Figures::new().with("binary_bytes", bytes as f64))
            }
        }
    }

    /// Milliseconds from spawn until both sockets accept.
    fn starts(&self, site: &Site) -> Result<Figures, BenchError> {
        let mut starts = Vec::new();
        for _ in 0..self.options.starts {
            let directory = site.directory.path();
            let (_router, took) = Router::start_timed(&self.router(site), directory)?;
            starts.push(took.as_secs_f64() * 1e3);
        }
        let mut figures = Figures::new();
        if let Some(Spread { median, min, max }) = Spread::of(starts) {
            figures.set("start_ms.median", median);
            figures.set("start_ms.min", min);
            figures.set("start_ms.max", max);
        }
        Ok(figures)
    }

    fn at_rest(&self, site: &Site) -> Result<(Router, Memory), BenchError> {
        let router = Router::start(&self.router(site), site.directory.path(), &site.network)?;
        std::thread::sleep(SETTLING);
        let memory = Memory::of(&[router.process.id()])?;
        Ok((router, memory))
    }

    /// Opens sessions in steps on a fresh router.
    fn hold(&mut self, site: &Site, case: Case) -> Result<Figures, BenchError> {
        let (router, idle) = self.at_rest(site)?;
        let mut holders = self.holders(site, case, &router)?;
        let mut steps = Vec::new();
        for sessions in &self.options.sessions {
            grow(&mut holders, *sessions)?;
            std::thread::sleep(SETTLING);
            let memory = Memory::of(&[router.process.id()])?;
            steps.push(Step {
                sessions: *sessions,
                router_pss_bytes: memory.pss,
                router_rss_bytes: memory.rss,
                kernel_bytes: kernel_memory(),
            });
        }
        let held = Held { case, idle, steps };
        let figures = Figures::new()
            .with_known(SESSION_BYTES, held.router_bytes_per_session())
            .with_known("kernel_bytes_per_session", held.kernel_bytes_per_session())
            .with_other("steps", metrics(&held.steps));
        self.held.push(held);
        Ok(figures)
    }

    fn holders(
        &self,
        site: &Site,
        case: Case,
        router: &Router,
    ) -> Result<Vec<Workers<HolderReport>>, BenchError> {
        let most = self.options.sessions.last().copied().unwrap_or(0);
        let count = most.div_ceil(SESSIONS_PER_HOLDER.min(holder::sessions_max()));
        let mut holders = Vec::new();
        for at in 0..count {
            let order = HolderOrder {
                target: router.listening.target(case),
                source: source(at),
                topic_prefix: format!("crosstie.bench.p{}.h{at}", std::process::id()),
            };
            let mut holder = Workers::default();
            let place = site.network.client_place(&site.allowed);
            holder.start(&site.executable, holder::ROLE, &place, &order)?;
            expect(&holder, &HolderReport::Ready)?;
            holders.push(holder);
        }
        Ok(holders)
    }
}

/// 127.0.0.1, 127.0.0.2, …
fn source(at: usize) -> Ipv4Addr {
    Ipv4Addr::new(127, 0, 0, u8::try_from(at % 250).unwrap_or(0) + 1)
}

/// Divides `sessions` among the holders and waits until they are held.
fn grow(holders: &mut [Workers<HolderReport>], sessions: usize) -> Result<(), BenchError> {
    let count = holders.len();
    for (at, holder) in holders.iter_mut().enumerate() {
        let share = sessions / count + usize::from(at < sessions % count);
        holder.tell(0, &Instruction::Hold { sessions: share });
        expect(holder, &HolderReport::Holding { sessions: share })?;
    }
    Ok(())
}

fn expect(holder: &Workers<HolderReport>, expected: &HolderReport) -> Result<(), BenchError> {
    let what = format!("{expected:?} is expected");
    let said = holder.expect(PATIENCE, &what, |report| match report == *expected {
        true => Ok(()),
        false => Err(report),
    });
    said.map_err(BenchError::Holder)
}

const SESSION_BYTES: &str = "router_bytes_per_session";
const MIB: f64 = 1_048_576.0;

impl Instrument for Footprint {
    const NAME: &'static str = "footprint";
    const PLACEMENTS: &'static [Placement] = &[];
    const IS_PLACED: bool = false;
    const IS_SINGLE: bool = true;

    type Case = Part;
    type Subject = Own;

    fn common(&self) -> &Common {
        &self.options.common
    }

    fn settings(&self, _site: &Site) -> Value {
        json!({
            "starts": self.options.starts,
            "sessions": self.options.sessions,
            "router_threads": self.options.router_threads,
        })
    }

    fn cases(&self) -> Result<Vec<Part>, BenchError> {
        let cases = chosen(&self.options.cases, &Case::OF_THE_DOCUMENT);
        let mut parts = vec![Part::Start, Part::Idle];
        parts.extend(cases.into_iter().map(Part::Sessions));
        parts.push(Part::Binary);
        Ok(parts)
    }

    fn subjects(&mut self, _: &Stage<'_>, _: &Part) -> Result<Vec<Own>, BenchError> {
        Ok(vec![Own])
    }

    fn round(&mut self, stage: &Stage<'_>, part: &Part, _: &mut Own) -> Round {
        self.look(stage.site, *part).map_err(Fault::end)
    }

    fn title(&self, _: &Section<Part>) -> String {
        present::TITLE.to_owned()
    }

    fn above(&self, _: &Site, _: &[&Section<Part>]) -> Vec<String> {
        vec![present::sessions(&self.held)]
    }

    fn table(&self, sections: &[&Section<Part>]) -> Option<Vec<Vec<String>>> {
        Some(present::parts(&self.options, sections))
    }

    fn below(&self, _: &Site, _: &[&Section<Part>]) -> Vec<String> {
        present::kernel(&self.held)
    }

    fn goals(&self, section: &Section<Part>, _: &[Section<Part>]) -> Vec<Goal> {
        let most = |what: &str, figure, bound| Goal::median(what, figure, Bound::AtMost(bound));
        vec![match section.case {
            Part::Start => most("start to first accept, ms", "start_ms.median", 10.0),
            Part::Idle => most("memory at rest, MiB", "router_pss_bytes", 8.0).in_units_of(MIB),
            Part::Sessions(case) => {
                let bound = match case.transport {
                    Transport::RawSocket | Transport::WebSocket | Transport::WebSocketBatched => {
                        1_250.0
                    }
                    Transport::WebSocketDeflated | Transport::WebSocketDeflatedApart => 65_536.0,
                };
                let what = format!("memory per idle session, bytes, {case}");
                most(&what, SESSION_BYTES, bound)
            }
            Part::Binary => most("binary, MiB", "binary_bytes", 15.0).in_units_of(MIB),
        }]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::usual;

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
                ..usual()
            };
            let error = options.check().err().map(|error| error.to_string());
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
