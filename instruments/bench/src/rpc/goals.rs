//! The project's goals for the round trip.

use super::options::RpcOptions;
use super::{BLOCKING, BY_DEFAULT, CPU_PER_CALL, P50};
use crate::figures::unfit;
use crate::frame::{Bound, FLOOR, Goal, Section};
use crate::machine::Placement;
use crate::report::document;
use crate::subject::Case;

/// The document's round trip over ours, also of sequential calls.
pub(super) fn document_over(options: &RpcOptions, section: &Section<Case>) -> Option<f64> {
    let p50_us = section.own()?.median(P50)?;
    let document_us = document::rtt_us(&section.case)?;
    (options.in_flight() == 1).then(|| document_us / p50_us)
}

/// Maximum cost of superfluous threads on one core.
fn by_default(section: &Section<Case>) -> Option<Goal> {
    let (ours, floor) = (section.subject(BY_DEFAULT)?, section.subject(FLOOR)?);
    let reached = section.over(ours, FLOOR, P50)?.median;
    let what = "p50 with default threads ÷ floor";
    let goal = Goal::computed(what, Some(reached), Bound::AtMost(1.15));
    Some(goal.unless(unfit([ours, floor])))
}

/// What it may cost to look for input before sleeping, and what it has to bring at a low rate.
fn waiting(options: &RpcOptions, section: &Section<Case>) -> Vec<Goal> {
    if section.subject(BLOCKING).is_none() || options.pairs > 1 {
        return Vec::new();
    }
    let over = |what: &str, figure, bound| Goal::over(what, BLOCKING, figure, bound);
    let cpu = |bound| over("CPU/call ÷ blocking", CPU_PER_CALL, Bound::AtMost(bound));
    match (section.placement, options.rate, options.outstanding) {
        (Some(Placement::Split), Some(200), 1) => {
            let p50 = over("p50 ÷ blocking", P50, Bound::AtMost(0.8));
            vec![p50, cpu(1.6)]
        }
        (Some(Placement::Split), None, 1) => vec![cpu(1.3)],
        (Some(Placement::SameCore), None, 1) | (Some(_), None, 64) => {
            let rate = over("calls/s ÷ blocking", "calls_per_s", Bound::AtLeast(0.99));
            vec![rate, cpu(1.01)]
        }
        _ => Vec::new(),
    }
}

pub(super) fn goals(options: &RpcOptions, section: &Section<Case>) -> Vec<Goal> {
    let mut pairs = Case::OF_THE_DOCUMENT.iter();
    let Some(pair) = pairs.position(|case| *case == section.case) else {
        return Vec::new();
    };
    let mut goals = waiting(options, section);
    if options.outstanding == 1 && options.pairs == 1 && options.rate.is_none() {
        let bounds = match section.placement {
            Some(Placement::SameCore) => Some(([1.10, 1.25], [25.0, 40.0])),
            Some(Placement::Split) if options.spin => Some(([0.45, 0.45], [2.0, 4.0])),
            Some(Placement::Split) => Some(([0.60, 0.60], [2.0, 4.0])),
            Some(Placement::Free) | None => None,
        };
        if let Some((over_floor, document_over_ours)) = bounds {
            let bound = Bound::AtMost(over_floor[pair]);
            goals.push(Goal::over_floor("p50 ÷ floor", P50, bound));
            let bound = Bound::AtLeast(document_over_ours[pair]);
            let reached = document_over(options, section);
            let goal = Goal::computed("document ÷ p50", reached, bound);
            goals.push(goal.unless(unfit(section.own())));
        }
        goals.extend(by_default(section));
    }
    if options.outstanding == 64 && options.pairs == 1 {
        let bound = Bound::AtMost([1.2, 2.5][pair]);
        goals.push(Goal::median("router CPU µs/call", CPU_PER_CALL, bound));
    }
    goals
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::{Figures, Series};
    use crate::frame::{OWN, judge, usual};

    #[test]
    fn goals_belong_to_their_setting() {
        #[track_caller]
        fn check(
            pair: usize,
            placement: Placement,
            outstanding: usize,
            spin: bool,
            expected: &[&str],
        ) {
            let series = |name: &str, p50_us: f64| {
                let mut series = Series::new(name);
                let figures = Figures::new().with(P50, p50_us).with(CPU_PER_CALL, 1.0);
                series.push(Ok(figures));
                series
            };
            let section = Section {
                case: Case::OF_THE_DOCUMENT[pair],
                placement: Some(placement),
                server_cores: 1,
                series: vec![series(OWN, 11.2), series(FLOOR, 10.0)],
                said: Vec::new(),
            };
            let options = RpcOptions {
                outstanding,
                spin,
                ..usual()
            };
            let goals = goals(&options, &section);
            let verdicts = goals
                .iter()
                .filter_map(|goal| judge(&section, goal, |_| false));
            let texts: Vec<String> = verdicts.map(|verdict| verdict.to_string()).collect();
            assert_eq!(texts, expected);
        }
        use Placement::{Free, SameCore, Split};
        let document = "document ÷ p50 ≥ 25.0: 43.1, met";
        let unix = "p50 ÷ floor ≤ 1.10: 1.12, missed";
        check(0, SameCore, 1, false, &[unix, document]);
        let document = "document ÷ p50 ≥ 40.0: 98.7, met";
        let websocket = "p50 ÷ floor ≤ 1.25: 1.12, met";
        check(1, SameCore, 1, false, &[websocket, document]);
        let document = "document ÷ p50 ≥ 2.00: 43.1, met";
        let spinning = "p50 ÷ floor ≤ 0.45: 1.12, missed";
        check(0, Split, 1, true, &[spinning, document]);
        let cpu = "router CPU µs/call ≤ 2.50: 1.00, met";
        check(1, Split, 64, false, &[cpu]);
        check(1, Split, 8, false, &[]);
        check(0, Free, 1, false, &[]);
    }
}
