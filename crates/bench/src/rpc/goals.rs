//! The figures that this project set itself for the round trip. A goal that is missed stays in
//! the report as missed.

use crate::figures::{Goal, verdict};
use crate::machine::placement::Placement;
use crate::subject::case::Case;

/// What decides which goals apply.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    pub case: Case,
    pub placement: Placement,
    pub outstanding: usize,
    pub pairs: usize,
    pub spin: bool,
}

/// The medians that goals look at.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reached {
    /// Median round trip over the floor's.
    pub over_floor: Option<f64>,
    /// The document's round trip over ours.
    pub document_over: Option<f64>,
    pub router_cpu_us_per_call: Option<f64>,
}

/// Lines about the goals of this setting; `unfit` is why they cannot be judged.
pub fn verdicts(setting: &Setting, reached: &Reached, unfit: Option<&str>) -> Vec<String> {
    let Some(pair) = Case::OF_THE_DOCUMENT
        .iter()
        .position(|case| *case == setting.case)
    else {
        return Vec::new();
    };
    let mut verdicts = Vec::new();
    if setting.outstanding == 1 && setting.pairs == 1 {
        let goals = match setting.placement {
            Placement::SameCore => Some(([1.10, 1.25], [25.0, 40.0])),
            Placement::Split if setting.spin => Some(([0.45, 0.45], [2.0, 4.0])),
            Placement::Split => Some(([1.10, 1.15], [2.0, 4.0])),
            Placement::Free => None,
        };
        if let Some((over_floor, document_over)) = goals {
            let goal = Goal::AtMost(over_floor[pair]);
            verdicts.extend(verdict("p50 ÷ floor", goal, reached.over_floor, unfit));
            let goal = Goal::AtLeast(document_over[pair]);
            verdicts.extend(verdict(
                "document ÷ p50",
                goal,
                reached.document_over,
                unfit,
            ));
        }
    }
    // Where the scheduler places, a figure flips with the machine's load: no goal's basis.
    if setting.outstanding == 64 && setting.pairs == 1 && setting.placement != Placement::Free {
        let goal = Goal::AtMost([1.2, 2.5][pair]);
        let reached = reached.router_cpu_us_per_call;
        verdicts.extend(verdict("router CPU µs/call", goal, reached, unfit));
    }
    verdicts
}

#[cfg(test)]
mod tests {
    use super::*;

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
            let case = Case::OF_THE_DOCUMENT[pair];
            let setting = Setting {
                case,
                placement,
                outstanding,
                pairs: 1,
                spin,
            };
            let reached = Reached {
                over_floor: Some(1.12),
                document_over: Some(30.0),
                router_cpu_us_per_call: Some(1.0),
            };
            let texts = verdicts(&setting, &reached, None);
            assert_eq!(texts, expected);
        }
        use Placement::{Free, SameCore, Split};
        check(
            0,
            SameCore,
            1,
            false,
            &[
                "p50 ÷ floor ≤ 1.10: 1.12, missed",
                "document ÷ p50 ≥ 25.0: 30.0, met",
            ],
        );
        check(
            1,
            SameCore,
            1,
            false,
            &[
                "p50 ÷ floor ≤ 1.25: 1.12, met",
                "document ÷ p50 ≥ 40.0: 30.0, missed",
            ],
        );
        check(
            0,
            Split,
            1,
            true,
            &[
                "p50 ÷ floor ≤ 0.45: 1.12, missed",
                "document ÷ p50 ≥ 2.00: 30.0, met",
            ],
        );
        check(
            1,
            Split,
            64,
            false,
            &["router CPU µs/call ≤ 2.50: 1.00, met"],
        );
        check(1, Free, 64, false, &[]);
        check(0, Free, 1, false, &[]);
    }
}
