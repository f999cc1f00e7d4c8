//! One round: fresh connections, a warm-up, a window in which everything is counted, and the checks that decide whether
//! it counts.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::figures::{Fault, Figures, Round};
use crate::frame::Ahead;
use crate::load::{Driven, Faults, Latencies, Traffic};
use crate::machine::accounting::CpuTime;
use crate::machine::{Memory, Usage, Used};
use crate::process::{Place, Stop, Workers};
use crate::rpc::worker::{EndReport, Instruction, ROLE, Role};

/// The two ends of one pair.
#[derive(Clone, Debug)]
pub(crate) struct Ends {
    pub(crate) callee: Role,
    pub(crate) caller: Role,
}

#[derive(Debug)]
pub(crate) struct Plan<'a> {
    pub(crate) executable: &'a Path,
    pub(crate) ends: &'a [Ends],
    pub(crate) operation: Operation,
    /// The place of the ends.
    pub(crate) place: &'a Place,
    /// The subject: the router's processes, or the relay.
    pub(crate) subject: &'a [u32],
    /// The processes that it needs besides, counted separately.
    pub(crate) beside: &'a [u32],
    pub(crate) warm_up: Duration,
    pub(crate) measured: Duration,
    /// Ends the round at once; it does not count then.
    pub(crate) stop: &'a Stop,
}

/// The operation that each answer ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Call,
    Event,
    Subscription,
    Registration,
    Confirm,
}

impl Operation {
    fn name(self) -> &'static str {
        match self {
            Self::Call => "call",
            Self::Event => "event",
            Self::Subscription => "subscription",
            Self::Registration => "registration",
            Self::Confirm => "confirm",
        }
    }
}

/// How long workers may take to start, and to finish.
const PATIENCE: Duration = Duration::from_secs(15);

/// Runs one round. `on_batch` gets the average of every batch of calls, in milliseconds.
pub(crate) fn run(plan: &Plan<'_>, on_batch: &mut dyn FnMut(f64)) -> Round {
    Attempt::new(plan)?.run(plan, on_batch)
}

/// Callees come first among them, callers after them.
struct Attempt {
    workers: Workers<EndReport>,
    pairs: usize,
}

impl Attempt {
    /// Starts all. A callee is ready before its caller is started.
    fn new(plan: &Plan<'_>) -> Result<Self, String> {
        let mut attempt = Self {
            workers: Workers::default(),
            pairs: plan.ends.len(),
        };
        attempt.hire("callee", plan, |ends| &ends.callee)?;
        attempt.hire("caller", plan, |ends| &ends.caller)?;
        Ok(attempt)
    }

    fn hire(
        &mut self,
        what: &str,
        plan: &Plan<'_>,
        role: impl Fn(&Ends) -> &Role,
    ) -> Result<(), String> {
        for ends in plan.ends {
            self.workers
                .start(plan.executable, ROLE, plan.place, role(ends))
                .map_err(|error| format!("{what}: {error}"))?;
        }
        let deadline = Instant::now() + PATIENCE;
        for _ in plan.ends {
            let next = self.workers.next(deadline);
            match next.map_err(|failed| format!("{what}: {}", failed.why))? {
                Some((_, EndReport::Ready)) => {}
                other => return Err(format!("{what}: expected it to be ready, got {other:?}")),
            }
        }
        Ok(())
    }

    fn run(mut self, plan: &Plan<'_>, on_batch: &mut dyn FnMut(f64)) -> Round {
        let ahead = Ahead::of(plan.warm_up, plan.measured);
        for caller in self.pairs..2 * self.pairs {
            self.workers.tell(caller, &Instruction::Go(ahead.window));
        }
        let drivers = self.workers.processes();
        let mut findings = Findings {
            on_batch,
            driven: Vec::new(),
            served: Vec::new(),
        };
        while findings.take_one(&self.workers, ahead.start, plan.stop)? {}
        let before = Usage::now(plan.subject, &drivers);
        let beside = CpuTime::of(plan.beside);
        while findings.take_one(&self.workers, ahead.end, plan.stop)? {}
        let after = Usage::now(plan.subject, &drivers);
        let beside_ns = CpuTime::of(plan.beside).since(&beside) as f64;
        let memory = Memory::of(plan.subject);
        let deadline = Instant::now() + PATIENCE;
        while findings.driven.len() < self.pairs {
            if !findings.take_one(&self.workers, deadline, plan.stop)? {
                return Err("a caller did not finish".into());
            }
        }
        for callee in 0..self.pairs {
            self.workers.finish(callee);
        }
        while findings.served.len() < self.pairs {
            if !findings.take_one(&self.workers, deadline, plan.stop)? {
                return Err("a callee did not finish".into());
            }
        }
        let used = after.since(&before);
        judge(plan, &findings, (&used, beside_ns), memory.ok())
    }
}

/// The workers' reports since the start signal.
struct Findings<'a> {
    on_batch: &'a mut dyn FnMut(f64),
    driven: Vec<Driven>,
    served: Vec<Traffic>,
}

impl Findings<'_> {
    /// Handles one report; false if none arrived in time.
    fn take_one(
        &mut self,
        workers: &Workers<EndReport>,
        deadline: Instant,
        stop: &Stop,
    ) -> Result<bool, String> {
        match workers.next_unless(stop, deadline)? {
            None => return Ok(false),
            Some((_, EndReport::Batch { average_ms })) => (self.on_batch)(average_ms),
            Some((_, EndReport::Driven(driven))) => self.driven.push(driven),
            Some((_, EndReport::Served(served))) => self.served.push(served),
            Some((_, other)) => return Err(format!("{other:?} from a worker that was at work")),
        }
        Ok(true)
    }
}

fn judge(
    plan: &Plan<'_>,
    findings: &Findings<'_>,
    (used, beside_ns): (&Used, f64),
    memory: Option<Memory>,
) -> Round {
    let mut latencies = Latencies::default();
    let mut faults = Faults::default();
    let mut callers = Traffic::default();
    let mut callees = Traffic::default();
    findings
        .served
        .iter()
        .for_each(|served| callees.add(*served));
    for caller in &findings.driven {
        latencies.add(&caller.recorded);
        faults.add(caller.faults);
        callers.add(caller.traffic);
    }
    let calls = latencies.count();
    let calls_per_s = calls as f64 / plan.measured.as_secs_f64();
    let per_call = |nanoseconds: f64| match calls {
        0 => 0.0,
        _ => used.us_per_operation(nanoseconds, calls_per_s),
    };
    let subject_ns = used.subject_ns;
    // A process that did nothing is not the subject.
    let memory = memory.filter(|_| subject_ns.is_some());
    let name = plan.operation.name();
    let mut figures = Figures::new()
        .with(&format!("{name}s"), calls as f64)
        .with(&format!("{name}s_per_s"), calls_per_s)
        .with_object("rtt_us", &latencies.summary())
        .with_known(
            &format!("router_cpu_us_per_{name}"),
            subject_ns.map(per_call),
        )
        .with(
            &format!("driver_cpu_us_per_{name}"),
            per_call(used.drivers_ns),
        )
        .with_known("router_pss_bytes", memory.map(|memory| memory.pss as f64))
        .with_known(
            "router_busy_cores",
            subject_ns.map(|busy_ns| used.cores(busy_ns)),
        )
        .with(
            "foreign_busy_cores",
            used.cores((used.others_ns - beside_ns).max(0.0)),
        )
        .with("caller_messages_per_read", callers.messages_per_read())
        .with("callee_messages_per_read", callees.messages_per_read());
    if !plan.beside.is_empty() {
        figures.set(&format!("beside_cpu_us_per_{name}"), per_call(beside_ns));
    }
    for (name, count) in faults.named() {
        figures = figures.with_own(name, count);
    }
    let why = faults
        .describe()
        .or_else(|| (calls == 0).then(|| format!("no {name} in time")));
    match why {
        None => Ok(figures),
        Some(why) => Err(Fault::beside(why, figures)),
    }
}
