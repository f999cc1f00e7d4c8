//! The figures that this project set itself, and which of them a run reached. A goal that is
//! missed stays on the page as missed.

use crate::frame::{self, Outcome};
use crate::metric::{Metric, number, with_unit};
use crate::run::{FLOOR, Group, OWN, Run, Subject};

/// One goal for one figure.
#[derive(Debug)]
struct Goal {
    bench: &'static str,
    /// What the case's name contains (of `amqp` all of it), and the placement; empty means any.
    case: &'static str,
    placement: &'static str,
    load: Load,
    figure: Figure,
    name: &'static str,
    bound: Bound,
}

/// Under which load a goal is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Load {
    Any,
    /// One operation after the other, by a router that sleeps while it waits.
    Sequential,
    /// The same, by a router that does not sleep.
    Spinning,
    /// One pair with 64 operations in flight.
    InFlight64,
    /// 500 subscribers at a rate that leaves no backlog.
    Subscribers500,
    /// The document's number of connections.
    Held60000,
    /// 500 subscribers and as many publications as go.
    Saturated500,
}

/// What is held against the bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Figure {
    Itself,
    /// Ours over that of another subject of the same run.
    Over(&'static str),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Bound {
    AtMost(f64),
    AtLeast(f64),
}

/// One goal, held against one group of one run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Verdict {
    pub(crate) what: String,
    pub(crate) case: String,
    pub(crate) placement: Option<String>,
    pub(crate) bound: String,
    pub(crate) reached: String,
    pub(crate) met: bool,
    /// Why it is not judged, where it is not.
    pub(crate) invalid: Option<String>,
}

use Bound::{AtLeast, AtMost};
use Figure::{Itself, Over};
use Load::{Any, Held60000, InFlight64, Saturated500, Sequential, Spinning, Subscribers500};

const fn goal(
    bench: &'static str,
    case: &'static str,
    placement: &'static str,
    load: Load,
    figure: Figure,
    name: &'static str,
    bound: Bound,
) -> Goal {
    Goal {
        bench,
        case,
        placement,
        load,
        figure,
        name,
        bound,
    }
}

const MIB: f64 = 1_048_576.0;
const UNIX: &str = "uds-rawsocket-msgpack";
const TCP: &str = "tcp-websocket-json";
const CROSSBAR: &str = "crossbar";
const RABBITMQ: &str = "rabbitmq";
const OPERATION_CPU: &str = "broker_cpu_us_per_operation";

#[rustfmt::skip]
const GOALS: &[Goal] = &[
    goal("rpc", UNIX, "same-core", Sequential, Over(FLOOR), "rtt_p50_us", AtMost(1.10)),
    goal("rpc", TCP, "same-core", Sequential, Over(FLOOR), "rtt_p50_us", AtMost(1.25)),
    goal("rpc", UNIX, "split", Sequential, Over(FLOOR), "rtt_p50_us", AtMost(1.10)),
    goal("rpc", TCP, "split", Sequential, Over(FLOOR), "rtt_p50_us", AtMost(1.15)),
    goal("rpc", "", "split", Spinning, Over(FLOOR), "rtt_p50_us", AtMost(0.45)),
    goal("rpc", UNIX, "", InFlight64, Itself, "router_cpu_us_per_call", AtMost(1.2)),
    goal("rpc", TCP, "", InFlight64, Itself, "router_cpu_us_per_call", AtMost(2.5)),
    goal("handshake", "", "", Any, Over(FLOOR), "server_cpu_us_per_handshake", AtMost(1.2)),
    goal("handshake", "", "", Any, Over(FLOOR), "handshakes_per_s", AtLeast(0.95)),
    goal("echo", "", "", Any, Over(FLOOR), "messages_per_s", AtLeast(0.6)),
    goal("stream", "TCP_RR", "", Any, Over(FLOOR), "transactions_per_s", AtLeast(0.97)),
    goal("stream", "TCP_RR", "", Any, Over("netserver"), "transactions_per_s", AtLeast(0.88)),
    goal("stream", "TCP_CRR", "", Any, Over(FLOOR), "transactions_per_s", AtLeast(0.97)),
    goal("stream", "TCP_STREAM echo", "", Any, Over(FLOOR), "megabits_per_s", AtLeast(0.95)),
    goal("accept", "", "", Held60000, Itself, "failed", AtMost(0.0)),
    goal("accept", "", "", Held60000, Itself, "elapsed_ms", AtMost(40_000.0)),
    goal("accept", "", "", Held60000, Itself, "server_bytes_per_connection", AtMost(2048.0)),
    goal("pubsub", "result", "", Any, Over(FLOOR), "latency_p50_us", AtMost(1.5)),
    goal("pubsub", "result", "", Any, Over(FLOOR), "latency_p99_us", AtMost(2.0)),
    goal("pubsub", "", "", Any, Over(FLOOR), "max_events_per_s", AtLeast(1.5)),
    goal("pubsub", UNIX, "", Subscribers500, Itself, "router_cpu_us_per_event", AtMost(1.2)),
    goal("pubsub", TCP, "", Subscribers500, Itself, "router_cpu_us_per_event", AtMost(3.0)),
    goal("pubsub", UNIX, "", Saturated500, Itself, "router_cpu_us_per_event", AtMost(0.5)),
    goal("pubsub", TCP, "", Saturated500, Itself, "router_cpu_us_per_event", AtMost(1.2)),
    goal("node", "", "", Any, Itself, "start_ms", AtMost(30.0)),
    goal("node", "", "", Any, Over(CROSSBAR), "start_ms", AtMost(1.0 / 3.0)),
    goal("node", "", "", Any, Over(CROSSBAR), "first_call_ms", AtMost(1.0 / 3.0)),
    goal("node", "", "", Any, Itself, "node_pss_bytes", AtMost(15.0 * MIB)),
    goal("node", "", "", Any, Over(CROSSBAR), "rtt_avg_us", AtMost(0.5)),
    goal("node", "", "", Any, Over(CROSSBAR), "calls_per_s", AtLeast(2.0)),
    goal("node", "", "", Any, Over(FLOOR), "rtt_avg_us", AtMost(1.1)),
    goal("oslo", "call native", "same-core", Any, Over(RABBITMQ), "operations_per_s", AtLeast(5.0)),
    goal("oslo", "call native", "split", Any, Over(RABBITMQ), "operations_per_s", AtLeast(2.0)),
    goal("oslo", "cast native", "same-core", Any, Over(RABBITMQ), "operations_per_s", AtLeast(4.0)),
    goal("oslo", "cast native", "split", Any, Over(RABBITMQ), "operations_per_s", AtLeast(1.5)),
    goal("oslo", "call python", "", Any, Over(RABBITMQ), "operations_per_s", AtLeast(1.2)),
    goal("oslo", "cast python", "", Any, Over(RABBITMQ), "operations_per_s", AtLeast(1.15)),
    goal("oslo", "call python", "", Any, Over(RABBITMQ), OPERATION_CPU, AtMost(0.1)),
    goal("oslo", "cast python", "", Any, Over(RABBITMQ), OPERATION_CPU, AtMost(0.1)),
    goal("oslo", "call, native, remote client, 50 ms", "", Any, Itself, "over_limit", AtLeast(0.99)),
    goal("oslo", "cast, native, remote client, 50 ms", "", Any, Itself, "over_limit", AtLeast(0.99)),
    goal("oslo", "call, native, remote server, 50 ms", "", Any, Itself, "over_limit", AtLeast(0.99)),
    goal("amqp", "transient", "", Any, Over(RABBITMQ), "broker_cpu_us_per_message", AtMost(0.2)),
    goal("amqp", "transient", "", Any, Over(RABBITMQ), "messages_per_s", AtLeast(3.0)),
    goal("amqp", "durable", "", Any, Over(RABBITMQ), "messages_per_s", AtLeast(2.0)),
    goal("footprint", "start", "", Any, Itself, "start_ms", AtMost(10.0)),
    goal("footprint", "idle", "", Any, Itself, "router_pss_bytes", AtMost(8.0 * MIB)),
    goal("footprint", UNIX, "", Any, Itself, "router_bytes_per_session", AtMost(2048.0)),
    goal("footprint", TCP, "", Any, Itself, "router_bytes_per_session", AtMost(3072.0)),
    goal("footprint", "binary", "", Any, Itself, "binary_bytes", AtMost(15.0 * MIB)),
];

/// A goal for more cases than this is judged by all of them together.
const CASES_MAX: usize = 6;

impl Verdict {
    fn of(said: &frame::Verdict) -> Self {
        let bound = match (said.at_most, said.at_least) {
            (Some(bound), _) => format!("≤ {}", number(bound)),
            (None, Some(bound)) => format!("≥ {}", number(bound)),
            (None, None) => String::new(),
        };
        let judged = said.verdict != Outcome::NotJudged;
        Self {
            what: said.what.clone(),
            case: said.case.clone(),
            placement: said.placement.clone(),
            bound,
            reached: said.reached.map_or_else(|| "–".to_owned(), number),
            met: said.verdict == Outcome::Met,
            invalid: (!judged).then(|| said.why.clone()),
        }
    }
}

/// What the bench itself has judged; else all goals that a run can be held against.
pub(crate) fn verdicts(run: &Run) -> Vec<Verdict> {
    if !run.verdicts.is_empty() {
        return run.verdicts.iter().map(Verdict::of).collect();
    }
    let goals = GOALS
        .iter()
        .filter(|goal| goal.bench == run.bench && goal.load.is_that_of(run));
    let judged = goals.flat_map(|goal| {
        let groups = run.groups.iter();
        let judged: Vec<Judged> = groups.filter_map(|group| goal.judge(group)).collect();
        match judged.len() > CASES_MAX {
            true => together(goal, judged),
            false => judged,
        }
    });
    judged.map(|judged| judged.verdict).collect()
}

/// A verdict and the figure that decided it.
struct Judged {
    verdict: Verdict,
    reached: f64,
}

/// The case that is furthest from the goal speaks for all, in each placement.
fn together(goal: &Goal, judged: Vec<Judged>) -> Vec<Judged> {
    let mut worst: Vec<(usize, usize, Judged)> = Vec::new();
    for one in judged {
        let same = |(.., known): &&mut (usize, usize, Judged)| {
            known.verdict.placement == one.verdict.placement
        };
        let met = usize::from(one.verdict.met);
        match worst.iter_mut().find(same) {
            None => worst.push((1, met, one)),
            Some((all, all_met, known)) => {
                *all += 1;
                *all_met += met;
                let further = match goal.bound {
                    AtMost(_) => one.reached > known.reached,
                    AtLeast(_) => one.reached < known.reached,
                };
                let invalid = known
                    .verdict
                    .invalid
                    .clone()
                    .or_else(|| one.verdict.invalid.clone());
                if further {
                    *known = one;
                }
                known.verdict.invalid = invalid;
            }
        }
    }
    let spoken = worst.into_iter().map(|(all, met, mut judged)| {
        let case = &judged.verdict.case;
        judged.verdict.case = format!("{met} of {all} cases reach it; the furthest: {case}");
        judged
    });
    spoken.collect()
}

impl Load {
    fn is_that_of(self, run: &Run) -> bool {
        let setting = |name| run.setting(name).unwrap_or(1.0);
        let (outstanding, pairs) = (setting("outstanding"), setting("pairs"));
        let work = run.settings.get("work").and_then(|work| work.as_str());
        let alone = outstanding == 1.0 && pairs == 1.0;
        match self {
            Self::Any => true,
            Self::Sequential => alone && !run.is_set("spin"),
            Self::Spinning => alone && run.is_set("spin"),
            Self::InFlight64 => outstanding == 64.0 && pairs == 1.0,
            Self::Held60000 => run.setting("connections") == Some(60_000.0),
            Self::Subscribers500 => run.setting("clients") == Some(500.0) && work == Some("load"),
            Self::Saturated500 => run.setting("clients") == Some(500.0) && work == Some("saturate"),
        }
    }
}

impl Goal {
    fn judge(&self, group: &Group) -> Option<Judged> {
        // Where the scheduler places, a figure flips with the machine's load: no goal's basis.
        let placed = group.placement.as_deref();
        // Held connections are no race: they are spread over all cores by intent. A node is run as
        // its user runs it, and beside others that are placed no better.
        let is_free_by_intent = matches!(self.bench, "accept" | "node");
        if placed == Some("free") && !is_free_by_intent
            || !(self.placement.is_empty() || placed == Some(self.placement))
        {
            return None;
        }
        let (case, named) = (group.case.to_lowercase(), self.case.to_lowercase());
        let is_named = match self.bench {
            // One name is the beginning of another.
            "amqp" => case == named,
            _ => case.contains(&named),
        };
        if !is_named {
            return None;
        }
        let own = group.subject(OWN)?;
        let metric = Metric::of(self.name);
        let (what, figure) = match self.figure {
            Itself => (metric.title(), own.median(self.name)?),
            Over(other) => {
                let ratio = own.over(group.subject(other)?, self.name)?.median;
                (format!("{} ÷ {other}", metric.title()), ratio)
            }
        };
        let form = |value: f64| match self.figure {
            Itself => with_unit(value, metric.unit),
            Over(_) => number(value),
        };
        let (bound, met) = match self.bound {
            AtMost(bound) => (format!("≤ {}", form(bound)), figure <= bound),
            AtLeast(bound) => (format!("≥ {}", form(bound)), figure >= bound),
        };
        let other = match self.figure {
            Over(other) => group.subject(other),
            Itself => None,
        };
        let invalid = [Some(own), other].into_iter().flatten().find_map(uncounted);
        let verdict = Verdict {
            what,
            case: group.case.clone(),
            placement: group.placement.clone(),
            bound,
            reached: form(figure),
            met,
            invalid,
        };
        let reached = figure;
        Some(Judged { verdict, reached })
    }
}

/// With more of the machine at work for somebody else, a figure says more about that.
const FOREIGN_BUSY_CORES_MAX: f64 = 0.25;

/// Why no goal is judged by a subject's figures.
fn uncounted(subject: &Subject) -> Option<String> {
    if !subject.valid {
        return Some(format!("{}: {}", subject.name, subject.why));
    }
    let foreign = subject.median("foreign_busy_cores")?;
    (foreign > FOREIGN_BUSY_CORES_MAX).then(|| {
        let cores = number(foreign);
        format!(
            "something else kept {cores} cores busy while {} was measured",
            subject.name
        )
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::frame::Frame;

    #[test]
    fn goals_belong_to_their_setting() {
        #[track_caller]
        fn check(placement: &str, outstanding: u32, spin: bool, expected: &[&str]) {
            let row = |subject: &str, p50: f64| {
                json!({
                    "case": UNIX, "placement": placement, "subject": subject, "valid": true,
                    "metrics": { "rtt_us": { "p50": p50 }, "router_cpu_us_per_call": 1.0 }
                })
            };
            let frame = json!({
                "bench": "rpc", "version": "", "commit": "",
                "machine": { "cpu": "", "cores": 1, "memory_bytes": 0, "os": "", "kernel": "" },
                "settings": { "outstanding": outstanding, "pairs": 1, "spin": spin },
                "results": [row("crosstie", 11.2), row("floor", 10.0)],
            });
            let run = Run::new("f", Frame::read(&frame.to_string()).unwrap());
            let found: Vec<String> = verdicts(&run)
                .into_iter()
                .map(|v| format!("{} {} {} {}", v.what, v.bound, v.reached, v.met))
                .collect();
            assert_eq!(found, expected);
        }
        check(
            "same-core",
            1,
            false,
            &["round trip p50 ÷ floor ≤ 1.10 1.12 false"],
        );
        check(
            "split",
            1,
            true,
            &["round trip p50 ÷ floor ≤ 0.45 1.12 false"],
        );
        check(
            "split",
            64,
            false,
            &["router CPU per call ≤ 1.20 µs 1.00 µs true"],
        );
        check("free", 64, false, &[]);
        check("split", 8, false, &[]);
    }
}
