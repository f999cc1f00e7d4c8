//! The project's goals for Publish & Subscribe.

use super::competitor::{MAX_EVENTS_PER_S, Workload};
use super::drivers::Rate;
use super::round::{CPU_PER_EVENT, P50, P99};
use crate::figures::Series;
use crate::frame::{Bound, FLOOR, Goal, Section, crowded};
use crate::report::table::number;
use crate::subject::{Case, Socket, Transport};

use crosstie_wamp::Serializer;

/// Goals are set for this many subscribers.
const CLIENTS: usize = 500;

/// ... and for two cases, of which this is the one or the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pair {
    UnixMsgPack,
    WebSocketJson,
}

impl Pair {
    fn of(case: &Case) -> Option<Self> {
        match (case.socket, case.transport, case.serializer) {
            (Socket::Unix, Transport::RawSocket, Serializer::MsgPack) => Some(Self::UnixMsgPack),
            (Socket::Tcp, Transport::WebSocket, Serializer::Json) => Some(Self::WebSocketJson),
            _ => None,
        }
    }
}

/// Maximum processor time of the router per event: without a backlog, and saturated.
fn cpu_us_max(pair: Pair, saturated: bool) -> f64 {
    match (pair, saturated) {
        (Pair::UnixMsgPack, false) => 1.2,
        (Pair::WebSocketJson, false) => 3.0,
        (Pair::UnixMsgPack, true) => 0.5,
        (Pair::WebSocketJson, true) => 1.2,
    }
}

pub(super) fn goals(section: &Section<Workload>, is_search: bool) -> Vec<Goal> {
    let workload = &section.case;
    let Some(pair) = Pair::of(&workload.case).filter(|_| workload.clients == CLIENTS) else {
        return Vec::new();
    };
    if is_search {
        let bound = Bound::AtLeast(1.5);
        return vec![Goal::over_floor(
            "highest rate ÷ floor's",
            MAX_EVENTS_PER_S,
            bound,
        )];
    }
    let is_saturated = matches!(workload.load.rate, Rate::Saturated { .. });
    let bound = Bound::AtMost(cpu_us_max(pair, is_saturated));
    let what = match is_saturated {
        true => "router CPU µs/event, saturated",
        false => "router CPU µs/event",
    };
    vec![Goal::median(what, CPU_PER_EVENT, bound)]
}

/// The goals of all results of the document together, in one case and placement; `all` are those.
pub(super) fn profile_goals(all: &[&Section<Workload>]) -> Vec<Goal> {
    let unfit = crowded(all.iter().flat_map(|one| &one.series));
    let whole = all
        .iter()
        .filter(|one| one.own().is_some_and(Series::is_valid));
    let every = Bound::AtLeast(all.len() as f64);
    // This goal itself is about rounds of a result that do not count.
    let whole = Some(whole.count() as f64);
    let mut goals = vec![Goal::computed(
        "results in which nothing was lost",
        whole,
        every,
    )];
    for (what, name, most) in [("p50 ÷ floor", P50, 1.5), ("p99 ÷ floor", P99, 2.0)] {
        let ratios = all.iter().filter_map(|one| {
            let ratio = one.over(one.own()?, FLOOR, name)?.median;
            Some((ratio, one.case.profile?.result))
        });
        let ratios: Vec<(f64, usize)> = ratios.collect();
        let met = ratios.iter().filter(|(ratio, _)| *ratio <= most).count();
        let furthest = ratios.iter().max_by(|one, other| one.0.total_cmp(&other.0));
        let Some((furthest, result)) = furthest else {
            continue;
        };
        let (most, furthest) = (number(most), number(*furthest));
        let what =
            format!("results with {what} ≤ {most} (the furthest {furthest}, result {result})");
        goals.push(Goal::computed(what, Some(met as f64), every));
    }
    goals.into_iter().map(|goal| goal.unless(unfit)).collect()
}
