//! One results file in order: cases, the subjects of each, their figures by name.

mod flat;

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::document;
use crate::frame::{Frame, Machine, Row, Verdict};
use flat::Flat;

/// Median, minimum and maximum of one figure over the rounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

impl Spread {
    /// `None` without values.
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.into_iter().filter(|v| v.is_finite()).collect();
        values.sort_by(f64::total_cmp);
        let (min, max) = (*values.first()?, *values.last()?);
        let middle = values.len() / 2;
        let median = match values.len().is_multiple_of(2) {
            true => f64::midpoint(values[middle - 1], values[middle]),
            false => values[middle],
        };
        Some(Self { median, min, max })
    }

    pub(crate) fn exactly(value: f64) -> Self {
        Self {
            median: value,
            min: value,
            max: value,
        }
    }
}

/// The results of one run of one bench.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) file: String,
    pub(crate) bench: String,
    pub(crate) version: String,
    pub(crate) commit: String,
    pub(crate) machine: Machine,
    pub(crate) settings: Map<String, Value>,
    pub(crate) groups: Vec<Group>,
    pub(crate) verdicts: Vec<Verdict>,
}

/// One case in one placement, with all its subjects.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) case: String,
    pub(crate) placement: Option<String>,
    pub(crate) subjects: Vec<Subject>,
}

/// All rounds of one subject in one group.
#[derive(Debug)]
pub(crate) struct Subject {
    pub(crate) name: String,
    pub(crate) figures: BTreeMap<String, Spread>,
    /// Figures that are lists of objects, such as memory by number of sessions.
    pub(crate) lists: BTreeMap<String, Vec<BTreeMap<String, f64>>>,
    /// The usage of each process of the subject, if the bench has such a picture.
    pub(crate) processes: Vec<Process>,
    /// The source document's values of these figures.
    pub(crate) documented: BTreeMap<String, Spread>,
    /// Values that are words, such as the limit of a rate.
    pub(crate) words: BTreeMap<String, String>,
    pub(crate) valid: bool,
    pub(crate) why: String,
    rounds: BTreeMap<usize, BTreeMap<String, f64>>,
}

pub(crate) const OWN: &str = "crosstie";
pub(crate) const FLOOR: &str = "floor";

/// The key of a row's processes.
const PROCESSES: &str = "processes";

/// One process in a picture of a system's load.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Process {
    pub(crate) role: String,
    pub(crate) figures: BTreeMap<String, f64>,
}

impl Process {
    /// Those of a list that have a role, the busiest first.
    fn all(picture: Value) -> Vec<Self> {
        let Value::Array(items) = picture else {
            return Vec::new();
        };
        let one = |item: &Value| {
            let figures = item.as_object()?.iter();
            let figures = figures.filter_map(|(name, value)| Some((name.clone(), value.as_f64()?)));
            Some(Self {
                role: item.get("role")?.as_str()?.to_owned(),
                figures: figures.collect(),
            })
        };
        let mut processes: Vec<Self> = items.iter().filter_map(one).collect();
        let cpu = |process: &Self| process.figures.get("cpu_percent").copied().unwrap_or(0.0);
        processes.sort_by(|a, b| cpu(b).total_cmp(&cpu(a)));
        processes
    }
}

/// The benches' key for a rate limited by something other than the subject.
const DRIVER_BOUND: &str = "driver_bound";

/// The benches' suffix of a ratio that this page computes itself.
const RATIO: &str = "_over_floor";

impl Run {
    pub(crate) fn new(file: &str, frame: Frame) -> Self {
        let mut groups: Vec<Group> = Vec::new();
        for row in frame.results {
            let same =
                |group: &&mut Group| group.case == row.case && group.placement == row.placement;
            match groups.iter_mut().find(same) {
                Some(group) => group.add(row),
                None => {
                    let mut group = Group {
                        case: row.case.clone(),
                        placement: row.placement.clone(),
                        subjects: Vec::new(),
                    };
                    group.add(row);
                    groups.push(group);
                }
            }
        }
        for subject in groups.iter_mut().flat_map(|group| &mut group.subjects) {
            subject.widen();
        }
        Self {
            file: file.to_owned(),
            bench: frame.bench,
            version: frame.version,
            commit: frame.commit,
            machine: frame.machine,
            settings: frame.settings,
            groups,
            verdicts: frame.verdicts,
        }
    }

    /// A setting that is a number.
    pub(crate) fn setting(&self, name: &str) -> Option<f64> {
        self.settings.get(name)?.as_f64()
    }

    pub(crate) fn is_set(&self, name: &str) -> bool {
        self.settings.get(name).and_then(Value::as_bool) == Some(true)
    }

    /// Every name of a figure, in the order of the first appearance.
    pub(crate) fn figure_names(&self) -> Vec<&str> {
        let subjects = self.groups.iter().flat_map(|group| &group.subjects);
        let names = subjects.flat_map(|subject| subject.figures.keys());
        each_once(names.map(String::as_str))
    }

    /// Whether both have the same options and machine: of two such runs the newer one is shown.
    fn repeats(&self, newer: &Self) -> bool {
        let cases = |run: &Self| {
            let cases = run.groups.iter();
            let cases = cases.map(|group| (group.case.clone(), group.placement.clone()));
            let mut cases: Vec<_> = cases.collect();
            cases.sort();
            cases
        };
        self.bench == newer.bench
            && self.machine.is_same(&newer.machine)
            && settings(&self.settings) == settings(&newer.settings)
            && cases(self) == cases(newer)
    }
}

/// In the order of the first appearance.
pub(crate) fn each_once<T: PartialEq>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut once = Vec::new();
    for item in items {
        if !once.contains(&item) {
            once.push(item);
        }
    }
    once
}

/// Without the settings that differ by the day and not by the options.
fn settings(settings: &Map<String, Value>) -> BTreeMap<&String, &Value> {
    settings
        .iter()
        .filter(|(name, _)| *name != "peers")
        .collect()
}

impl Machine {
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        (&self.cpu, self.cores, &self.kernel, &self.os)
            == (&other.cpu, other.cores, &other.kernel, &other.os)
    }
}

/// A run that a newer one replaces.
#[derive(Debug)]
pub(crate) struct Superseded {
    pub(crate) run: Run,
    pub(crate) by: String,
}

/// Sorts by time and removes runs that a newer one replaces.
pub(crate) fn newest_first(runs: &mut Vec<Run>) -> Vec<Superseded> {
    runs.sort_by_key(|run| std::cmp::Reverse(run.machine.unix_time_s));
    let mut shown: Vec<Run> = Vec::new();
    let mut superseded = Vec::new();
    for run in runs.drain(..) {
        match shown.iter().find(|newer| run.repeats(newer)) {
            Some(newer) => superseded.push(Superseded {
                by: newer.file.clone(),
                run,
            }),
            None => shown.push(run),
        }
    }
    *runs = shown;
    superseded
}

impl Group {
    pub(crate) fn subject(&self, name: &str) -> Option<&Subject> {
        self.subjects.iter().find(|subject| subject.name == name)
    }

    pub(crate) fn floor(&self) -> Option<&Subject> {
        self.subject(FLOOR)
    }

    fn add(&mut self, row: Row) {
        let at = self.subjects.iter().position(|s| s.name == row.subject);
        let at = at.unwrap_or_else(|| {
            self.subjects.push(Subject::new(&row.subject));
            self.subjects.len() - 1
        });
        self.subjects[at].add(row);
    }
}

impl Subject {
    fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            figures: BTreeMap::new(),
            lists: BTreeMap::new(),
            processes: Vec::new(),
            documented: BTreeMap::new(),
            words: BTreeMap::new(),
            valid: true,
            why: String::new(),
            rounds: BTreeMap::new(),
        }
    }

    fn add(&mut self, mut row: Row) {
        // A picture is not a curve: it is removed from the lists.
        let picture = row.metrics.remove(PROCESSES);
        let flat = Flat::of(&row.metrics);
        if let Some(round) = row.round {
            if row.valid {
                let medians = flat
                    .figures
                    .iter()
                    .filter(|(name, _)| *name != DRIVER_BOUND);
                let medians = medians.map(|(name, s)| (name.clone(), s.median));
                self.rounds.insert(round, medians.collect());
            }
        } else {
            for (name, figure) in flat.figures {
                if let Some(name) = name.strip_prefix(document::PREFIX) {
                    self.documented.insert(name.to_owned(), figure);
                } else if name == DRIVER_BOUND {
                    // Some benches have a number: it is a remark all the same.
                    if figure.median > 0.0 {
                        self.words.insert(name, String::new());
                    }
                } else if !name.ends_with(RATIO) {
                    self.figures.insert(name, figure);
                }
            }
            self.lists.extend(flat.lists);
            self.processes
                .extend(picture.map(Process::all).unwrap_or_default());
            self.words.extend(flat.words);
        }
        if !row.valid {
            self.valid = false;
            let why = match row.round {
                Some(round) => format!("round {round}: {}", row.why),
                None => row.why,
            };
            // The summary has most often repeated the reasons of its rounds.
            if !self.why.contains(&why) {
                if !self.why.is_empty() && !why.is_empty() {
                    self.why += "; ";
                }
                self.why += &why;
            }
        }
    }

    /// Fills in figures of the rounds that the summary lacks: the spread, or all of it.
    fn widen(&mut self) {
        let mut by_name: BTreeMap<&String, Vec<f64>> = BTreeMap::new();
        for (name, value) in self.rounds.values().flatten() {
            by_name.entry(name).or_default().push(*value);
        }
        for (name, values) in by_name {
            let Some(rounds) = Spread::of(values) else {
                continue;
            };
            let figure = self.figures.entry(name.clone()).or_insert(rounds);
            // A sum such as the number of calls is outside of the rounds' range.
            if figure.min == figure.max && (rounds.min..=rounds.max).contains(&figure.median) {
                (figure.min, figure.max) = (rounds.min, rounds.max);
            }
        }
    }

    pub(crate) fn median(&self, name: &str) -> Option<f64> {
        self.figures.get(name).map(|figure| figure.median)
    }

    /// One figure over that of another subject: round by round, because those were measured a moment apart, or of the
    /// medians if there are no rounds.
    pub(crate) fn over(&self, other: &Self, name: &str) -> Option<Spread> {
        let pairs = self.rounds.iter().filter_map(|(round, own)| {
            let other = other.rounds.get(round)?;
            Some(own.get(name)? / other.get(name)?)
        });
        Spread::of(pairs).or_else(|| {
            let ratio = self.median(name)? / other.median(name)?;
            ratio.is_finite().then(|| Spread::exactly(ratio))
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn run(file: &str, time_s: u64, settings: &Value, results: &Value) -> Run {
        let frame = json!({
            "bench": "rpc", "version": "1", "commit": "c", "settings": settings,
            "machine": {
                "cpu": "x", "cores": 2, "memory_bytes": 1, "os": "o", "kernel": "k",
                "unix_time_s": time_s
            },
            "results": results,
        });
        Run::new(file, Frame::read(&frame.to_string()).unwrap())
    }

    fn row(subject: &str, round: Option<usize>, p50: f64) -> Value {
        json!({
            "case": "c", "subject": subject, "round": round, "valid": true, "why": "",
            "metrics": { "rtt_us": { "p50": p50 }, "calls": if round.is_some() { 10 } else { 20 } }
        })
    }

    #[test]
    fn rounds_widen_their_sum_and_pair_up_with_the_floors() {
        let rows = json!([
            row("crosstie", Some(1), 12.0),
            row("crosstie", Some(2), 30.0),
            row("crosstie", None, 21.0),
            row("floor", Some(1), 10.0),
            row("floor", Some(2), 30.0),
            row("floor", None, 20.0),
        ]);
        let run = run("f", 1, &json!({}), &rows);
        let (own, floor) = (&run.groups[0].subjects[0], run.groups[0].floor().unwrap());
        let expected = Spread {
            median: 21.0,
            min: 12.0,
            max: 30.0,
        };
        assert_eq!(own.figures["rtt_p50_us"], expected);
        assert_eq!(own.figures["calls"], Spread::exactly(20.0));
        let ratio = own.over(floor, "rtt_p50_us").unwrap();
        assert!((ratio.median - 1.1).abs() < 1e-9 && (ratio.max - 1.2).abs() < 1e-9);
    }

    #[test]
    fn a_picture_of_processes_is_no_figure() {
        let mut whole = row("crosstie", None, 1.0);
        whole["metrics"]["processes"] = json!([
            { "role": "guest", "pid": 7, "cpu_percent": 3.5 },
            { "role": "controller", "pid": 6, "cpu_percent": 90.0 },
            { "pid": 8 }, 9
        ]);
        let run = run("f", 1, &json!({}), &json!([whole]));
        let subject = &run.groups[0].subjects[0];
        assert!(subject.lists.is_empty());
        let roles: Vec<&str> = subject.processes.iter().map(|p| p.role.as_str()).collect();
        assert_eq!(roles, ["controller", "guest"]);
        assert_eq!(subject.processes[1].figures["pid"], 7.0);
    }

    #[test]
    fn reasons_are_shown_once() {
        let fault = |round: Option<usize>, why: &str| json!({ "case": "c", "subject": "x", "round": round, "valid": false, "why": why });
        let rows = json!([fault(None, "round 2: 1 lost"), fault(Some(2), "1 lost")]);
        let run = run("f", 1, &json!({}), &rows);
        let subject = &run.groups[0].subjects[0];
        assert!(!subject.valid);
        assert_eq!(subject.why, "round 2: 1 lost");
    }

    #[test]
    fn of_runs_that_ask_the_same_the_newest_is_shown() {
        let rows = json!([row("crosstie", None, 1.0)]);
        let mut runs = vec![
            run("old", 1, &json!({ "runs": 5, "peers": [] }), &rows),
            run("new", 3, &json!({ "runs": 5, "peers": ["x"] }), &rows),
            run("other", 2, &json!({ "runs": 9 }), &rows),
        ];
        let superseded = newest_first(&mut runs);
        let files: Vec<&str> = runs.iter().map(|run| run.file.as_str()).collect();
        assert_eq!(files, ["new", "other"]);
        assert_eq!(
            (superseded[0].run.file.as_str(), superseded[0].by.as_str()),
            ("old", "new")
        );
    }
}
