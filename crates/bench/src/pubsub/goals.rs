//! The figures that this project set itself for Publish & Subscribe. A goal that is missed stays
//! in the report as missed.

use super::contest::{Contest, MAX_EVENTS_PER_S};
use super::round::{CPU_PER_EVENT, P50, P99};
use super::stage::Rate;
use crate::figures::{CROWDED, Goal, unfit, verdict};
use crate::machine::placement::Placement;
use crate::report::table::number;
use crate::subject::case::{Case, Socket, Transport};

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

/// The router's processor time per event, at most: without a backlog, and saturated.
fn cpu_us_max(pair: Pair, saturated: bool) -> f64 {
    match (pair, saturated) {
        (Pair::UnixMsgPack, false) => 1.2,
        (Pair::WebSocketJson, false) => 3.0,
        (Pair::UnixMsgPack, true) => 0.5,
        (Pair::WebSocketJson, true) => 1.2,
    }
}

/// Verdicts about one contest.
pub(super) fn goals(contest: &Contest) -> Vec<String> {
    let terms = &contest.terms;
    let (Some(router), Some(pair)) = (contest.series.first(), Pair::of(&terms.case)) else {
        return Vec::new();
    };
    let set = router.subject == "crosstie"
        && terms.clients == CLIENTS
        && terms.placement != Placement::Free;
    if !set {
        return Vec::new();
    }
    let reached = contest.over_floor(router, MAX_EVENTS_PER_S);
    let unfit = unfit(&contest.series);
    let what = "highest rate ÷ floor's";
    let mut goals = Vec::from_iter(verdict(what, Goal::AtLeast(1.5), reached, unfit));
    if goals.is_empty() {
        let saturated = matches!(terms.load.rate, Rate::Saturated { .. });
        let goal = Goal::AtMost(cpu_us_max(pair, saturated));
        let what = match saturated {
            true => "router CPU µs/event, saturated",
            false => "router CPU µs/event",
        };
        goals.extend(verdict(what, goal, router.median(CPU_PER_EVENT), unfit));
    }
    goals
}

/// Verdicts about all profiles together.
pub(super) fn profile_goals(contests: &[&Contest]) -> Vec<String> {
    let ours = |contest: &&&Contest| {
        let router = contest.series.first();
        router.is_some_and(|router| router.subject == "crosstie")
            && contest.terms.placement != Placement::Free
    };
    let contests: Vec<&&Contest> = contests.iter().filter(ours).collect();
    if contests.is_empty() {
        return Vec::new();
    }
    let whole = contests.iter().filter(|one| one.series[0].is_valid());
    let (whole, all) = (whole.count(), contests.len());
    // That a round of a result does not count is itself what the first goal is about.
    let is_crowded = contests
        .iter()
        .any(|one| unfit(&one.series) == Some(CROWDED));
    let outcome = |met: bool| match met {
        _ if is_crowded => "not judged: something else was busy here",
        true => "met",
        false => "missed",
    };
    let lost = outcome(whole == all);
    let mut goals = vec![format!("nothing lost: {whole} of {all} results, {lost}")];
    for (what, name, most) in [("p50 ÷ floor", P50, 1.5), ("p99 ÷ floor", P99, 2.0)] {
        let ratios: Vec<(f64, usize)> = contests
            .iter()
            .filter_map(|one| {
                let ratio = one.over_floor(&one.series[0], name)?;
                Some((ratio, one.terms.profile?.result))
            })
            .collect();
        let met = ratios.iter().filter(|(ratio, _)| *ratio <= most).count();
        let worst = ratios.iter().max_by(|one, other| one.0.total_cmp(&other.0));
        let Some((worst, result)) = worst else {
            continue;
        };
        let outcome = outcome(met == all);
        goals.push(format!(
            "{what} ≤ {}: {met} of {all} results, the largest {} (result {result}), {outcome}",
            number(most),
            number(*worst),
        ));
    }
    goals
}
