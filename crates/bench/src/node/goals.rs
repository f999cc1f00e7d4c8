//! The figures that this project set itself for a node.

use super::original::NATIVE_NAME;
use super::section::{Section, short};
use crate::figures::{Goal, Series, unfit, verdict};

const MIB: f64 = 1_048_576.0;
const PEER: &str = "crossbar";

const START_MS_MAX: f64 = 30.0;
const START_OVER_PEER_MAX: f64 = 1.0 / 3.0;
const NODE_MIB_MAX: f64 = 15.0;
const AVERAGE_OVER_PEER_MAX: f64 = 0.5;
const CALLS_OVER_PEER_MIN: f64 = 2.0;
/// What a node around native pairs may cost them.
const AVERAGE_OVER_PLAIN_MAX: f64 = 1.1;

/// A line for each goal that this directory has something to say about.
pub(super) fn verdicts(section: &Section) -> Vec<String> {
    let Some(own) = section.subject("crosstie") else {
        return Vec::new();
    };
    let unfit = unfit(section.subjects.iter().map(|measured| &measured.node));
    let mut lines = Vec::new();
    let mut judge = |what: &str, goal, reached| {
        lines.extend(verdict(what, goal, reached, unfit));
    };
    let median = |series: &Series, name, unit: f64| series.median(name).map(|value| value / unit);
    judge(
        "start to all transports accepting, ms",
        Goal::AtMost(START_MS_MAX),
        median(&own.node, "start_ms", 1.0),
    );
    judge(
        "memory of the node without its components, MiB",
        Goal::AtMost(NODE_MIB_MAX),
        median(&own.node, "node_pss_bytes", MIB),
    );
    let over = |own: &Series, other: Option<&Series>, name| Some(own.over(other?, name)?.median);
    let peer = section.subject(PEER);
    for (what, name) in [
        ("start to accepting over crossbar's", "start_ms"),
        ("start to first call over crossbar's", "first_call_ms"),
    ] {
        let reached = over(&own.node, peer.map(|peer| &peer.node), name);
        judge(what, Goal::AtMost(START_OVER_PEER_MAX), reached);
    }
    let plain = section
        .subject("floor")
        .filter(|_| section.name == NATIVE_NAME);
    for (title, pair) in &own.pairs {
        let of = |subject: Option<&'_ super::section::Measured>, name| {
            over(
                pair,
                subject.and_then(|subject| subject.pairs.get(title)),
                name,
            )
        };
        let case = short(title);
        judge(
            &format!("{case}: average over crossbar's"),
            Goal::AtMost(AVERAGE_OVER_PEER_MAX),
            of(peer, "rtt_avg_us"),
        );
        judge(
            &format!("{case}: calls/s over crossbar's"),
            Goal::AtLeast(CALLS_OVER_PEER_MIN),
            of(peer, "calls_per_s"),
        );
        judge(
            &format!("{case}: average over the plain pair's"),
            Goal::AtMost(AVERAGE_OVER_PLAIN_MAX),
            of(plain, "rtt_avg_us"),
        );
    }
    lines
}
