//! Goals and verdicts. An instrument defines its goals once; they are judged here; terminal and report draw the
//! verdicts. A missed goal stays as missed.

use std::fmt;

use serde::Serialize;

use super::section::{FLOOR, Section};
use crate::figures::{CROWDED, DRIVER_BOUND, Series, unfit};
use crate::report::table::number;

/// The side of its goal on which a figure should be.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Bound {
    AtMost(f64),
    AtLeast(f64),
}

/// The goal of one of the subject's figures.
#[derive(Clone, Debug)]
pub(crate) struct Goal {
    /// With the unit, if it has one: `time, s`.
    what: String,
    reached: Reached,
    bound: Bound,
}

#[derive(Clone, Debug)]
enum Reached {
    /// The median, in units of so many.
    Median(&'static str, f64),
    /// Over another subject's, round by round.
    Over(&'static str, &'static str),
    /// A value computed by the instrument, and the reason why it cannot be judged.
    Computed(Option<f64>, Option<String>),
}

impl Goal {
    /// For the median of a figure of ours.
    pub(crate) fn median(what: impl Into<String>, figure: &'static str, bound: Bound) -> Self {
        Self {
            what: what.into(),
            reached: Reached::Median(figure, 1.0),
            bound,
        }
    }

    /// The same in a larger unit.
    pub(crate) fn in_units_of(mut self, unit: f64) -> Self {
        if let Reached::Median(_, of) = &mut self.reached {
            *of = unit;
        }
        self
    }

    /// For a figure of ours over the floor's.
    pub(crate) fn over_floor(what: impl Into<String>, figure: &'static str, bound: Bound) -> Self {
        Self::over(what, FLOOR, figure, bound)
    }

    /// For a figure of ours over another subject's.
    pub(crate) fn over(
        what: impl Into<String>,
        subject: &'static str,
        figure: &'static str,
        bound: Bound,
    ) -> Self {
        Self {
            what: what.into(),
            reached: Reached::Over(subject, figure),
            bound,
        }
    }

    /// For a value that the instrument has computed itself.
    pub(crate) fn computed(what: impl Into<String>, reached: Option<f64>, bound: Bound) -> Self {
        Self {
            what: what.into(),
            reached: Reached::Computed(reached, None),
            bound,
        }
    }

    /// ... unless there is a reason not to judge it.
    pub(crate) fn unless(mut self, why: Option<&str>) -> Self {
        if let Reached::Computed(_, unfit) = &mut self.reached {
            *unfit = why.map(str::to_owned);
        }
        self
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) enum Outcome {
    #[serde(rename = "met")]
    Met,
    #[serde(rename = "missed")]
    Missed,
    #[serde(rename = "not judged")]
    NotJudged,
}

/// A goal and its result: a row of the results file.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Verdict {
    case: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    placement: Option<String>,
    what: String,
    #[serde(flatten)]
    bound: Bound,
    #[serde(skip_serializing_if = "Option::is_none")]
    reached: Option<f64>,
    verdict: Outcome,
    /// The reason why it is not judged.
    why: String,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sign, bound) = match self.bound {
            Bound::AtMost(bound) => ('≤', bound),
            Bound::AtLeast(bound) => ('≥', bound),
        };
        let (what, bound) = (&self.what, number(bound));
        let reached = self.reached.map_or_else(|| "–".to_owned(), number);
        write!(f, "{what} {sign} {bound}: {reached}, ")?;
        match self.verdict {
            Outcome::Met => f.write_str("met"),
            Outcome::Missed => f.write_str("missed"),
            Outcome::NotJudged => write!(f, "not judged: {}", self.why),
        }
    }
}

/// Judges a section's first subject by a goal. `None` if the figure is unknown, as that of an absent peer is.
pub(crate) fn judge<C: fmt::Display>(
    section: &Section<C>,
    goal: &Goal,
    is_bound: impl Fn(&Series) -> bool,
) -> Option<Verdict> {
    let own = section.own()?;
    let (reached, unfit) = match &goal.reached {
        Reached::Computed(reached, why) => {
            let busy = crowded([own]).map(str::to_owned);
            (Some((*reached)?), why.clone().or(busy))
        }
        Reached::Median(figure, unit) => {
            let reached = own.median(figure).map(|value| value / unit);
            (reached, unfit([own]).map(str::to_owned))
        }
        Reached::Over(other, figure) => {
            let other = section.subject(other)?;
            let reached = section.over(own, &other.subject, figure);
            let unfit = unfit([own, other]).map(str::to_owned);
            let is_rate = figure.ends_with("_per_s");
            let reached = reached.map(|ratio| ratio.median);
            let unfit = unfit.or_else(|| {
                let reached = reached.filter(|_| is_rate)?;
                is_open(reached, goal.bound, is_bound(own), is_bound(other))
                    .then(|| DRIVER_BOUND.to_owned())
            });
            (reached, unfit)
        }
    };
    let met = match (goal.bound, reached) {
        (_, None) => false,
        (Bound::AtMost(bound), Some(reached)) => reached <= bound,
        (Bound::AtLeast(bound), Some(reached)) => reached >= bound,
    };
    let verdict = match (&unfit, met) {
        // An unknown figure is not a goal's concern, unless it is required.
        (None, _) if reached.is_none() => return None,
        (Some(_), _) => Outcome::NotJudged,
        (None, true) => Outcome::Met,
        (None, false) => Outcome::Missed,
    };
    Some(Verdict {
        case: section.case.to_string(),
        placement: section.placement.map(|placement| placement.to_string()),
        what: goal.what.clone(),
        bound: goal.bound,
        reached,
        verdict,
        why: unfit.unwrap_or_default(),
    })
}

/// Whether a ratio of rates may really be on the other side of its goal because a driver limited one of them: without
/// it ours would be higher, or the other's.
fn is_open(reached: f64, bound: Bound, own_is_bound: bool, other_is_bound: bool) -> bool {
    let is_above = match bound {
        Bound::AtMost(bound) => reached > bound,
        Bound::AtLeast(bound) => reached >= bound,
    };
    match is_above {
        true => other_is_bound,
        false => own_is_bound,
    }
}

/// The reason why goals about several sections cannot be judged together.
pub(crate) fn crowded<'a>(subjects: impl IntoIterator<Item = &'a Series>) -> Option<&'static str> {
    let mut subjects = subjects.into_iter();
    subjects
        .any(|one| unfit([one]) == Some(CROWDED))
        .then_some(CROWDED)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::Figures;
    use crate::frame::OWN;

    fn series(name: &str, rate: f64, crowd: f64) -> Series {
        let mut series = Series::new(name);
        let figures = Figures::new()
            .with("x_per_s", rate)
            .with("x_bytes", 2_097_152.0);
        series.push(Ok(figures.with("foreign_busy_cores", crowd)));
        series
    }

    fn section(own: Series, other: Series) -> Section<&'static str> {
        Section {
            case: "case",
            placement: None,
            server_cores: 1,
            series: vec![own, other],
            said: Vec::new(),
        }
    }

    #[test]
    fn verdicts() {
        #[track_caller]
        fn check(goal: &Goal, crowd: f64, bound: &str, expected: Option<&str>) {
            let section = section(series(OWN, 9.0, crowd), series(FLOOR, 10.0, 0.0));
            let is_bound = |series: &Series| series.subject == bound;
            let found = judge(&section, goal, is_bound).map(|verdict| verdict.to_string());
            assert_eq!(found.as_deref(), expected);
        }
        use Bound::{AtLeast, AtMost};
        let rate = |least| Goal::over_floor("x ÷ floor", "x_per_s", AtLeast(least));
        check(&rate(0.8), 0.0, "", Some("x ÷ floor ≥ 0.80: 0.90, met"));
        check(&rate(0.95), 0.0, "", Some("x ÷ floor ≥ 0.95: 0.90, missed"));
        // A driver that limits ours cannot make it seem better, nor one that limits the floor make ours seem worse.
        check(&rate(0.8), 0.0, OWN, Some("x ÷ floor ≥ 0.80: 0.90, met"));
        check(
            &rate(0.95),
            0.0,
            FLOOR,
            Some("x ÷ floor ≥ 0.95: 0.90, missed"),
        );
        let open = "x ÷ floor ≥ 0.95: 0.90, not judged: driver-bound";
        check(&rate(0.95), 0.0, OWN, Some(open));
        let open = "x ÷ floor ≥ 0.80: 0.90, not judged: driver-bound";
        check(&rate(0.8), 0.0, FLOOR, Some(open));
        let crowded = "x ÷ floor ≥ 0.80: 0.90, not judged: something else was busy here";
        check(&rate(0.8), 0.5, "", Some(crowded));
        let bytes = Goal::median("MiB", "x_bytes", AtMost(3.0)).in_units_of(1_048_576.0);
        check(&bytes, 0.0, "", Some("MiB ≤ 3.00: 2.00, met"));
        check(&Goal::median("y", "y", AtMost(3.0)), 0.0, "", None);
        check(
            &Goal::over("y", "peer", "x_per_s", AtMost(3.0)),
            0.0,
            "",
            None,
        );
        check(
            &Goal::computed("z", Some(4.0), AtMost(3.0)),
            0.0,
            "",
            Some("z ≤ 3.00: 4.00, missed"),
        );
        let why = Goal::computed("z", Some(4.0), AtMost(3.0)).unless(Some("no"));
        check(&why, 0.0, "", Some("z ≤ 3.00: 4.00, not judged: no"));
    }

    #[test]
    fn a_floor_that_is_suspect_is_no_goals_basis() {
        let mut floor = series(FLOOR, 10.0, 0.0);
        floor.suspect = Some("floor suspect".to_owned());
        let section = section(series(OWN, 9.0, 0.0), floor);
        let goal = Goal::over_floor("x ÷ floor", "x_per_s", Bound::AtLeast(0.8));
        let verdict = judge(&section, &goal, |_| false).unwrap();
        let text = "x ÷ floor ≥ 0.80: –, not judged: a round does not count";
        assert_eq!(verdict.to_string(), text);
        let json = serde_json::to_value(&verdict).unwrap();
        let expected = serde_json::json!({
            "case": "case", "what": "x ÷ floor", "at_least": 0.8, "verdict": "not judged",
            "why": "a round does not count"
        });
        assert_eq!(json, expected);
    }
}
