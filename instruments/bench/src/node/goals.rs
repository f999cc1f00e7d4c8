//! The project's goals for a node.

use super::Case;
use super::original::NATIVE_NAME;
use crate::frame::{Bound, Goal};

const MIB: f64 = 1_048_576.0;
const PEER: &str = "crossbar";

const START_MS_MAX: f64 = 30.0;
const START_OVER_PEER_MAX: f64 = 1.0 / 3.0;
const NODE_MIB_MAX: f64 = 15.0;
const AVERAGE_OVER_PEER_MAX: f64 = 0.5;
const CALLS_OVER_PEER_MIN: f64 = 2.0;
/// Maximum cost of a node around native pairs.
const AVERAGE_OVER_PLAIN_MAX: f64 = 1.1;

/// Those of a node, or of one of its pairs.
pub(super) fn goals(case: &Case) -> Vec<Goal> {
    match case.pair() {
        None => of_node(),
        Some(pair) => of_pair(&pair, case.directory == NATIVE_NAME),
    }
}

fn of_node() -> Vec<Goal> {
    let over_peer =
        |what, figure| Goal::over(what, PEER, figure, Bound::AtMost(START_OVER_PEER_MAX));
    vec![
        Goal::median(
            "start to all transports accepting, ms",
            "start_ms",
            Bound::AtMost(START_MS_MAX),
        ),
        Goal::median(
            "memory of the node without its components, MiB",
            "node_pss_bytes",
            Bound::AtMost(NODE_MIB_MAX),
        )
        .in_units_of(MIB),
        over_peer("start to accepting over crossbar's", "start_ms"),
        over_peer("start to first call over crossbar's", "first_call_ms"),
    ]
}

fn of_pair(pair: &str, is_native: bool) -> Vec<Goal> {
    let what = |what: &str| format!("{pair}: {what}");
    let average = Bound::AtMost(AVERAGE_OVER_PEER_MAX);
    let calls = Bound::AtLeast(CALLS_OVER_PEER_MIN);
    let mut goals = vec![
        Goal::over(what("average over crossbar's"), PEER, "rtt_avg_us", average),
        Goal::over(what("calls/s over crossbar's"), PEER, "calls_per_s", calls),
    ];
    if is_native {
        let what = what("average over the plain pair's");
        let bound = Bound::AtMost(AVERAGE_OVER_PLAIN_MAX);
        goals.push(Goal::over_floor(what, "rtt_avg_us", bound));
    }
    goals
}
