//! Figures by name, round by round: the results of instruments. Units are in the names.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::error::BenchError;
use crate::load::{Rtt, Spread};
use crate::machine::Used;
use crate::report::json::Row;

/// The results of one subject in one round.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Figures {
    values: BTreeMap<String, f64>,
    /// Values other than numbers: words, lists, a snapshot of processes.
    others: Map<String, Value>,
    /// Values of the round alone, not of the summary.
    own: Map<String, Value>,
}

impl Figures {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Adds a figure; a NaN or infinite figure is unknown, and left out.
    pub(crate) fn with(mut self, name: &str, value: f64) -> Self {
        self.set(name, value);
        self
    }

    /// Adds a figure, if it is known.
    pub(crate) fn with_known(self, name: &str, value: Option<f64>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    pub(crate) fn set(&mut self, name: &str, value: f64) {
        if value.is_finite() {
            self.values.insert(name.to_owned(), value);
        }
    }

    /// Adds a value other than a number.
    pub(crate) fn with_other(mut self, name: &str, other: Value) -> Self {
        self.others.insert(name.to_owned(), other);
        self
    }

    /// Adds a value of the round's row alone.
    pub(crate) fn with_own(mut self, name: &str, own: impl Into<Value>) -> Self {
        self.own.insert(name.to_owned(), own.into());
        self
    }

    /// Adds the round trips of one kind as an object: `rtt_us.p50` and the like.
    pub(crate) fn with_object(mut self, name: &str, times: &Rtt) -> Self {
        for (quantile, us) in times.named() {
            self.set(&format!("{name}.{quantile}"), us);
        }
        self
    }

    /// Adds the times of one kind, under names with their prefix: `rtt_p50_us` and the like.
    pub(crate) fn with_times(mut self, name: &str, times: &Rtt) -> Self {
        for (quantile, us) in times.named() {
            self.set(&format!("{name}_{quantile}_us"), us);
        }
        self
    }

    /// Adds the cores kept busy by the subject (called `name` in names), its driver and all other processes, and the
    /// processor time of each operation at this rate.
    pub(crate) fn with_usage(
        self,
        subject: &str,
        operation: &str,
        used: &Used,
        per_s: f64,
    ) -> Self {
        let per_operation = |ns| used.us_per_operation(ns, per_s);
        let subject_ns = used.subject_ns;
        self.with_known(
            &format!("{subject}_cpu_us_per_{operation}"),
            subject_ns.map(per_operation),
        )
        .with_known(
            &format!("{subject}_busy_cores"),
            subject_ns.map(|ns| used.cores(ns)),
        )
        .with(
            &format!("driver_cpu_us_per_{operation}"),
            per_operation(used.drivers_ns),
        )
        .with("driver_busy_cores", used.cores(used.drivers_ns))
        .with(FOREIGN_BUSY, used.cores(used.others_ns))
    }

    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    pub(crate) fn value(&self, name: &str) -> Option<f64> {
        self.values.get(name).copied()
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.values.keys().map(String::as_str)
    }

    /// These figures, replaced by the other's where both have one.
    pub(crate) fn but(mut self, other: Self) -> Self {
        self.values.extend(other.values);
        self.others.extend(other.others);
        self
    }

    /// As a row of the results file: `a.b` is `b` of the object `a`.
    pub(crate) fn metrics(&self) -> Value {
        let mut metrics = self.others.clone();
        metrics.extend(self.own.clone());
        for (name, value) in &self.values {
            match name.split_once('.') {
                None => {
                    metrics.insert(name.clone(), json!(value));
                }
                Some((object, name)) => {
                    let object = metrics.entry(object).or_insert_with(|| json!({}));
                    if let Some(fields) = object.as_object_mut() {
                        fields.insert(name.to_owned(), json!(value));
                    }
                }
            }
        }
        Value::Object(metrics)
    }
}

/// The name of a round's text, if it has one.
pub(crate) const WORDS: &str = "words";

/// The reason why a round does not count.
#[derive(Debug, Default)]
pub(crate) struct Fault {
    pub why: String,
    /// Its results nevertheless.
    pub found: Box<Figures>,
    /// An error after which nothing more can be measured: the run ends.
    pub end: Option<Box<BenchError>>,
}

impl Fault {
    /// With the results until then.
    pub(crate) fn beside(why: String, found: Figures) -> Self {
        Self {
            why,
            found: Box::new(found),
            end: None,
        }
    }

    /// An error after which nothing more can be measured.
    pub(crate) fn end(error: BenchError) -> Self {
        Self {
            why: error.to_string(),
            end: Some(Box::new(error)),
            ..Self::default()
        }
    }
}

/// The results of a round, or the reason why it does not count.
pub(crate) type Round = Result<Figures, Fault>;

impl From<String> for Fault {
    fn from(why: String) -> Self {
        Self {
            why,
            ..Self::default()
        }
    }
}

impl From<&str> for Fault {
    fn from(why: &str) -> Self {
        why.to_owned().into()
    }
}

/// All rounds of one subject in one case, in the order of running.
#[derive(Clone, Debug, Default)]
pub(crate) struct Series {
    pub subject: String,
    pub rounds: Vec<Result<Figures, String>>,
    /// The reason why none of it counts, beyond the rounds' own.
    pub suspect: Option<String>,
    /// The results of rounds that do not count, by their place among the rounds.
    beside: BTreeMap<usize, Figures>,
}

impl Series {
    pub(crate) fn new(subject: impl Into<String>) -> Self {
        Self {
            subject: subject.into(),
            rounds: Vec::new(),
            suspect: None,
            beside: BTreeMap::new(),
        }
    }

    pub(crate) fn push(&mut self, round: Result<Figures, String>) {
        self.rounds.push(round);
    }

    /// Stores a round, including the results of one that does not count.
    pub(crate) fn take(&mut self, round: Round) {
        let round = round.map_err(|fault| {
            self.beside.insert(self.rounds.len(), *fault.found);
            fault.why
        });
        self.push(round);
    }

    /// Median, minimum and maximum over the rounds that count.
    pub(crate) fn spread(&self, name: &str) -> Option<Spread> {
        Spread::of(self.counted().filter_map(|figures| figures.value(name)))
    }

    pub(crate) fn median(&self, name: &str) -> Option<f64> {
        self.spread(name).map(|spread| spread.median)
    }

    /// The text of the last round that counts.
    pub(crate) fn words(&self) -> Option<String> {
        let said = self.counted().last()?.others.get(WORDS)?.as_str()?;
        (!said.is_empty()).then(|| said.to_owned())
    }

    /// Over all rounds that count.
    pub(crate) fn sum(&self, name: &str) -> Option<f64> {
        let values = self.counted().filter_map(|figures| figures.value(name));
        values.reduce(|sum, value| sum + value)
    }

    /// Round by round: one figure over that of another subject a moment apart.
    pub(crate) fn over(&self, other: &Self, name: &str) -> Option<Spread> {
        let pairs = self.rounds.iter().zip(&other.rounds);
        Spread::of(pairs.filter_map(|(own, other)| {
            let (own, other) = (own.as_ref().ok()?, other.as_ref().ok()?);
            let ratio = own.value(name)? / other.value(name)?;
            ratio.is_finite().then_some(ratio)
        }))
    }

    /// A failed round is a failed run: averages must not hide a loss.
    pub(crate) fn is_valid(&self) -> bool {
        !self.rounds.is_empty() && self.suspect.is_none() && self.rounds.iter().all(Result::is_ok)
    }

    /// The reason why these figures do not count, or the excluded rounds.
    pub(crate) fn why(&self) -> String {
        let faults = self.rounds.iter().enumerate();
        let faults = faults.filter_map(|(at, round)| {
            let fault = round.as_ref().err()?;
            Some(format!("round {}: {fault}", at + 1))
        });
        let faults: Vec<String> = faults.chain(self.suspect.clone()).collect();
        faults.join("; ")
    }

    /// The medians, and every round, in the frame's JSON.
    pub(crate) fn rows(&self, case: &str, placement: Option<&str>) -> Vec<Row> {
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
        let none = Figures::new();
        let rounds = self.rounds.iter().enumerate().map(|(at, round)| {
            let number = Some(at + 1);
            let beside = self.beside.get(&at).unwrap_or(&none);
            match round {
                Ok(figures) => row(number, figures.metrics(), true, String::new()),
                Err(why) => row(number, beside.metrics(), false, why.clone()),
            }
        });
        [summary].into_iter().chain(rounds).collect()
    }

    fn metrics(&self) -> Value {
        self.summary().metrics()
    }

    /// The medians; of values other than numbers the last round's that counts.
    pub(crate) fn summary(&self) -> Figures {
        let mut summary = Figures::new();
        for figures in self.counted() {
            for name in figures.names() {
                if summary.value(name).is_none()
                    && let Some(median) = self.median(name)
                {
                    summary.set(name, median);
                }
            }
            summary.others.extend(figures.others.clone());
        }
        summary
    }

    fn counted(&self) -> impl Iterator<Item = &Figures> {
        self.rounds.iter().filter_map(|round| round.as_ref().ok())
    }
}

/// The number of cores kept busy by anything but subject and drivers.
pub(crate) const FOREIGN_BUSY: &str = "foreign_busy_cores";

/// Maximum load by other processes; beyond it no goal is judged.
pub(crate) const FOREIGN_BUSY_CORES_MAX: f64 = 0.25;

/// The reason why goals about these subjects cannot be judged; `None` if they can. One rule for all instruments: a
/// machine that was busy with something else judges nothing.
pub(crate) fn unfit<'a>(subjects: impl IntoIterator<Item = &'a Series>) -> Option<&'static str> {
    let mut unfit = None;
    for series in subjects {
        if !series.is_valid() {
            return Some("a round does not count");
        }
        let foreign = series.median(FOREIGN_BUSY);
        if foreign.is_some_and(|busy| busy > FOREIGN_BUSY_CORES_MAX) {
            unfit = Some(CROWDED);
        }
    }
    unfit
}

/// Another process kept the machine busy.
pub(crate) const CROWDED: &str = "something else was busy here";

/// The rate is the driver's, not the subject's.
pub(crate) const DRIVER_BOUND: &str = "driver-bound";

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
    fn nan_and_infinity_are_unknown() {
        let figures = Figures::new().with("a", f64::NAN).with_known("b", None);
        assert_eq!(figures.names().count(), 0);
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
