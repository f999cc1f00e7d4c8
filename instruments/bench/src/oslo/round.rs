//! One round seen from the bench: a fresh server and a fresh client, the usage by them and the broker, and the checks
//! that decide whether it counts.

use std::path::Path;
use std::time::{Duration, Instant};

use super::server::Served;
use super::worker::{EndReport, Finding, Go, ROLE, Role};
use crate::figures::Figures;
use crate::frame::Ahead;
use crate::load::{Latencies, Window};
use crate::machine::{CpuTime, Usage, Used};
use crate::process::{Failed, INTERRUPTED, Place, Stop, Workers};

pub(super) struct Plan<'a> {
    pub(super) executable: &'a Path,
    pub(super) place: &'a Place,
    pub(super) server: Role,
    pub(super) client: Role,
    /// The broker's; without any its processor time stays unknown.
    pub(super) processes: &'a [u32],
    /// Those of the delay lines, which belong to neither side.
    pub(super) links: &'a [u32],
    pub(super) extent: Extent,
    pub(super) stop: &'a Stop,
}

/// The end of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    Time {
        warm_up: Duration,
        measured: Duration,
    },
    /// After so many operations, each of which takes at least this long. Then as many more, reported separately.
    Count {
        operations: u64,
        each: Duration,
        steady_operations: u64,
    },
}

/// How long a process may take to start and to finish; a Python imports for a second or two.
const PATIENCE: Duration = Duration::from_secs(30);
/// The index of the client; the server is started first.
const CLIENT: usize = 1;

pub(super) fn run(plan: &Plan<'_>) -> Result<Figures, String> {
    let mut workers = Workers::default();
    for role in [&plan.server, &plan.client] {
        workers
            .start(plan.executable, ROLE, plan.place, role)
            .map_err(|error| error.to_string())?;
        match next(&workers, plan, Instant::now() + PATIENCE)? {
            Some(EndReport::Ready) => {}
            other => return Err(format!("expected a ready end, got {other:?}")),
        }
    }
    let drivers = workers.processes();
    let usage = || {
        (
            Usage::now(plan.processes, &drivers),
            CpuTime::of(plan.links),
        )
    };
    let since = |(before, links): (Usage, CpuTime)| {
        let (after, links_after) = usage();
        (after.since(&before), links_after.since(&links) as f64)
    };
    let mut ends = Ends::default();
    let used = match plan.extent {
        Extent::Time { warm_up, measured } => {
            let ahead = Ahead::of(warm_up, measured);
            let go = Go {
                window: ahead.window,
                operations_max: u64::MAX,
                steady_operations: 0,
            };
            workers.tell(CLIENT, &go);
            ends.listen(&workers, plan, ahead.start)?;
            let before = usage();
            ends.listen(&workers, plan, ahead.end)?;
            let used = since(before);
            ends.listen_for_both(&workers, plan, Duration::ZERO)?;
            used
        }
        Extent::Count {
            operations,
            each,
            steady_operations,
        } => {
            let window = Window {
                start_ns: 0,
                end_ns: u64::MAX / 2,
            };
            let before = usage();
            let go = Go {
                window,
                operations_max: operations,
                steady_operations,
            };
            workers.tell(CLIENT, &go);
            let longest = each * u32::try_from(operations).unwrap_or(u32::MAX);
            ends.listen_for_both(&workers, plan, 2 * longest)?;
            since(before)
        }
    };
    figures(plan, &ends.judged()?, &used.0, used.1)
}

/// Both ends' last reports. They may be late: the bench itself may get a processor late.
#[derive(Default)]
struct Ends {
    driven: Option<Finding>,
    served: Option<Served>,
}

impl Ends {
    /// The client's results, if both ends did all that they should.
    fn judged(self) -> Result<Finding, String> {
        let finding = self.driven.ok_or("the client did not finish")?;
        let served = self.served.ok_or("the server did not finish")?;
        let mut faults = finding.driven.faults;
        faults.add(served.faults);
        if let Some(steady) = &finding.steady {
            faults.add(steady.driven.faults);
        }
        faults.describe().map_or(Ok(finding), Err)
    }

    /// Until a moment, whatever is reported.
    fn listen(
        &mut self,
        workers: &Workers<EndReport>,
        plan: &Plan<'_>,
        until: Instant,
    ) -> Result<(), String> {
        while self.listen_once(workers, plan, until)? {}
        Ok(())
    }

    /// Until both have reported: the client sends the server the number of operations.
    fn listen_for_both(
        &mut self,
        workers: &Workers<EndReport>,
        plan: &Plan<'_>,
        longest: Duration,
    ) -> Result<(), String> {
        let deadline = Instant::now() + longest + PATIENCE;
        while (self.driven.is_none() || self.served.is_none())
            && self.listen_once(workers, plan, deadline)?
        {}
        Ok(())
    }

    /// Handles one report; false if none arrives in time.
    fn listen_once(
        &mut self,
        workers: &Workers<EndReport>,
        plan: &Plan<'_>,
        deadline: Instant,
    ) -> Result<bool, String> {
        match next(workers, plan, deadline)? {
            Some(EndReport::Driven(finding)) => self.driven = Some(finding),
            Some(EndReport::Served(found)) => self.served = Some(found),
            Some(other) => return Err(format!("expected the end, got {other:?}")),
            None => return Ok(false),
        }
        Ok(true)
    }
}

/// The next report, or the failure of one of the two; `None` if none arrives until `deadline`.
fn next(
    ends: &Workers<EndReport>,
    plan: &Plan<'_>,
    deadline: Instant,
) -> Result<Option<EndReport>, String> {
    match ends.next_unless(plan.stop, deadline) {
        Ok(report) => Ok(report.map(|(_, report)| report)),
        Err(_) if plan.stop.is_wished() => Err(INTERRUPTED.to_owned()),
        Err(Failed { at, why }) => {
            let who = ["server", "client"][at.min(CLIENT)];
            Err(format!("{who}: {why}"))
        }
    }
}

fn figures(
    plan: &Plan<'_>,
    finding: &Finding,
    used: &Used,
    links_ns: f64,
) -> Result<Figures, String> {
    // Further operations after the first ones count instead of them.
    let (driven, elapsed_ns) = match &finding.steady {
        Some(steady) => (&steady.driven, steady.elapsed_ns),
        None => (&finding.driven, finding.elapsed_ns),
    };
    let latencies = Latencies::of(&driven.recorded);
    let operations = latencies.count() as f64;
    if latencies.count() == 0 {
        return Err("no operation in time".to_owned());
    }
    let seconds = match plan.extent {
        Extent::Time { measured, .. } => measured.as_secs_f64(),
        Extent::Count { .. } => elapsed_ns as f64 / 1e9,
    };
    let per_s = operations / seconds;
    let first = finding.driven.right as f64;
    let accounted = match (plan.extent, &finding.steady) {
        (Extent::Count { .. }, Some(_)) => operations + first,
        _ => operations,
    };
    let setup_s = finding.setup_ns as f64 / 1e9;
    // Delay lines belong to neither side.
    let used = Used {
        others_ns: (used.others_ns - links_ns).max(0.0),
        ..*used
    };
    let figures = Figures::new()
        .with("operations", operations)
        .with("operations_per_s", per_s)
        .with_times("rtt", &latencies.summary())
        .with("setup_ms", setup_s * 1e3)
        .with_usage("broker", "operation", &used, accounted / used.seconds);
    Ok(match plan.extent {
        Extent::Time { .. } => figures,
        // The document's clock starts before its client connects.
        Extent::Count { .. } => {
            let all = first + finding.setup_operations as f64;
            let first_s = finding.elapsed_ns as f64 / 1e9;
            figures.with("with_setup_per_s", all / (setup_s + first_s))
        }
    })
}
