//! Figures by name, round by round: what most instruments find. Units are in the names.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use crate::load::histogram::Spread;
use crate::report::json::{Row, metrics};
use crate::report::table::number;

/// What one subject showed in one round.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Figures(BTreeMap<String, f64>);

impl Figures {
    pub fn new() -> Self {
        Self::default()
    }

    /// With one more; a figure that is no number is not known, and left out.
    pub fn with(mut self, name: &str, value: f64) -> Self {
        self.set(name, value);
        self
    }

    /// With one more, where it is known.
    pub fn with_known(self, name: &str, value: Option<f64>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    pub fn set(&mut self, name: &str, value: f64) {
        if value.is_finite() {
            self.0.insert(name.to_owned(), value);
        }
    }

    pub fn value(&self, name: &str) -> Option<f64> {
        self.0.get(name).copied()
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}

/// All rounds of one subject in one case, in the order in which they were run.
#[derive(Clone, Debug, Default)]
pub struct Series {
    pub subject: String,
    /// What each round found, or why it does not count.
    pub rounds: Vec<Result<Figures, String>>,
    /// Why none of it counts, beyond what a round itself can tell.
    pub suspect: Option<String>,
}

impl Series {
    pub fn new(subject: impl Into<String>) -> Self {
        Self {
            subject: subject.into(),
            rounds: Vec::new(),
            suspect: None,
        }
    }

    pub fn push(&mut self, round: Result<Figures, String>) {
        self.rounds.push(round);
    }

    /// Median, minimum and maximum over the rounds that count.
    pub fn spread(&self, name: &str) -> Option<Spread> {
        Spread::of(self.counted().filter_map(|figures| figures.value(name)))
    }

    pub fn median(&self, name: &str) -> Option<f64> {
        self.spread(name).map(|spread| spread.median)
    }

    /// Round by round: one figure over that of another subject a moment apart.
    pub fn over(&self, other: &Self, name: &str) -> Option<Spread> {
        let pairs = self.rounds.iter().zip(&other.rounds);
        Spread::of(pairs.filter_map(|(own, other)| {
            let (own, other) = (own.as_ref().ok()?, other.as_ref().ok()?);
            let ratio = own.value(name)? / other.value(name)?;
            ratio.is_finite().then_some(ratio)
        }))
    }

    /// A failed round is a failed run: what was lost once cannot be averaged away.
    pub fn is_valid(&self) -> bool {
        !self.rounds.is_empty() && self.suspect.is_none() && self.rounds.iter().all(Result::is_ok)
    }

    /// Why these figures do not count, or the rounds that are not in them.
    pub fn why(&self) -> String {
        let faults = self.rounds.iter().enumerate();
        let faults = faults.filter_map(|(at, round)| {
            let fault = round.as_ref().err()?;
            Some(format!("round {}: {fault}", at + 1))
        });
        let faults: Vec<String> = faults.chain(self.suspect.clone()).collect();
        faults.join("; ")
    }

    /// The medians, and every round, as the JSON frame has them.
    pub fn rows(&self, case: &str, placement: Option<&str>) -> Vec<Row> {
        let row = |round, metrics, valid, why| Row {
            case: case.to_owned(),
            subject: self.subject.clone(),
            placement: placement.map(str::to_owned),
            round,
            metrics,
            valid,
            why,
        };
        let summary = row(None, self.metrics(), self.is_valid(), self.why());
        let rounds = self.rounds.iter().enumerate().map(|(at, round)| {
            let at = Some(at + 1);
            match round {
                Ok(figures) => row(at, metrics(figures), true, String::new()),
                Err(why) => row(at, metrics(&Figures::new()), false, why.clone()),
            }
        });
        [summary].into_iter().chain(rounds).collect()
    }

    fn metrics(&self) -> Value {
        let mut medians = Figures::new();
        for name in self.counted().flat_map(Figures::names) {
            if medians.value(name).is_none()
                && let Some(median) = self.median(name)
            {
                medians.set(name, median);
            }
        }
        metrics(&medians)
    }

    fn counted(&self) -> impl Iterator<Item = &Figures> {
        self.rounds.iter().filter_map(|round| round.as_ref().ok())
    }
}

/// On which side of its goal a figure should be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Goal {
    AtMost(f64),
    AtLeast(f64),
}

/// What else kept the machine busy may be this much, or no goal is judged.
pub const FOREIGN_BUSY_CORES_MAX: f64 = 0.25;

/// Why goals about these subjects cannot be judged; nothing where they can. The figure that tells
/// how busy the machine was with something else is `foreign_busy_cores`.
pub fn unfit<'a>(subjects: impl IntoIterator<Item = &'a Series>) -> Option<&'static str> {
    let mut unfit = None;
    for series in subjects {
        if !series.is_valid() {
            return Some("a round does not count");
        }
        let foreign = series.median("foreign_busy_cores");
        if foreign.is_some_and(|busy| busy > FOREIGN_BUSY_CORES_MAX) {
            unfit = Some(CROWDED);
        }
    }
    unfit
}

/// Something else than the subjects kept the machine busy.
pub const CROWDED: &str = "something else was busy here";

/// The rate is the driver's, not the subject's.
pub const DRIVER_BOUND: &str = "driver-bound";

/// One line about a goal: met, missed, or why it is not judged. Nothing where the figure is not
/// known.
pub fn verdict(
    what: &str,
    goal: Goal,
    reached: Option<f64>,
    unfit: Option<&str>,
) -> Option<String> {
    let reached = reached?;
    let (sign, bound, met) = match goal {
        Goal::AtMost(bound) => ('≤', bound, reached <= bound),
        Goal::AtLeast(bound) => ('≥', bound, reached >= bound),
    };
    let verdict = match unfit {
        Some(why) => format!("not judged: {why}"),
        None => outcome(met).to_owned(),
    };
    let (bound, reached) = (number(bound), number(reached));
    Some(format!("{what} {sign} {bound}: {reached}, {verdict}"))
}

fn outcome(met: bool) -> &'static str {
    if met { "met" } else { "missed" }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(rates: &[Option<f64>]) -> Series {
        let mut series = Series::new("x");
        for rate in rates {
            series.push(match rate {
                Some(rate) => Ok(Figures::new().with("operations_per_s", *rate)),
                None => Err("1 lost".to_owned()),
            });
        }
        series
    }

    #[test]
    fn rounds_that_failed_are_in_no_figure() {
        let own = series(&[Some(10.0), None, Some(14.0)]);
        assert_eq!(own.median("operations_per_s"), Some(12.0));
        assert_eq!(own.median("other"), None);
        assert!(!own.is_valid());
        assert_eq!(own.why(), "round 2: 1 lost");
        let rows = own.rows("case", Some("split"));
        assert_eq!(rows.len(), 4);
        assert_eq!(rows[0].metrics["operations_per_s"], 12.0);
        assert!(!rows[0].valid && !rows[2].valid && rows[3].valid);
        assert_eq!(rows[3].round, Some(3));
    }

    #[test]
    fn ratios_pair_the_rounds() {
        let own = series(&[Some(12.0), Some(30.0), Some(22.0)]);
        let floor = series(&[Some(10.0), None, Some(20.0)]);
        let ratio = own.over(&floor, "operations_per_s").unwrap();
        assert!((ratio.min - 1.1).abs() < 1e-9 && (ratio.max - 1.2).abs() < 1e-9);
    }

    #[test]
    fn what_is_no_number_is_not_known() {
        let figures = Figures::new().with("a", f64::NAN).with_known("b", None);
        assert_eq!(figures.names().count(), 0);
    }

    #[test]
    fn verdicts() {
        #[track_caller]
        fn check(goal: Goal, reached: Option<f64>, unfit: Option<&str>, expected: Option<&str>) {
            assert_eq!(verdict("x", goal, reached, unfit).as_deref(), expected);
        }
        use Goal::{AtLeast, AtMost};
        check(AtMost(1.2), Some(1.1), None, Some("x ≤ 1.20: 1.10, met"));
        check(AtMost(1.2), Some(1.3), None, Some("x ≤ 1.20: 1.30, missed"));
        check(AtLeast(0.95), Some(0.96), None, Some("x ≥ 0.95: 0.96, met"));
        let why = "x ≥ 0.95: 0.96, not judged: driver-bound";
        check(AtLeast(0.95), Some(0.96), Some(DRIVER_BOUND), Some(why));
        check(AtLeast(0.95), None, None, None);
    }

    #[test]
    fn goals_are_judged_on_whole_figures_of_an_idle_machine() {
        #[track_caller]
        fn check(foreign: f64, fails: bool, expected: Option<&str>) {
            let mut one = Series::new("x");
            one.push(Ok(Figures::new().with("foreign_busy_cores", foreign)));
            if fails {
                one.push(Err("1 lost".to_owned()));
            }
            assert_eq!(unfit([&one]), expected);
        }
        check(0.1, false, None);
        check(0.3, false, Some(CROWDED));
        check(0.3, true, Some("a round does not count"));
    }
}
