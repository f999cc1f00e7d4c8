//! One directory's rounds: of each subject the node as a whole, and each pair in it; and the rows
//! that they make in the JSON frame.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::processes::Used;
use super::round::Found;
use super::subject::Subject;
use crate::figures::{Figures, Series};
use crate::report::document;
use crate::report::json::Row;
use crate::subject::case::Case;

/// Not pinned: the document's node ran where the scheduler put it.
pub(super) const PLACEMENT: &str = "free";

/// How the directories are called that the document has figures for.
const DOCUMENTED: &str = "rpc_roundtrip";

/// One directory, measured.
pub(super) struct Section {
    /// The directory's name, which is the case.
    pub(super) name: String,
    pub(super) subjects: Vec<Measured>,
}

/// One subject's rounds.
pub(super) struct Measured {
    pub(super) node: Series,
    /// By what the callers call themselves.
    pub(super) pairs: BTreeMap<String, Series>,
    /// Each round's processes: one round is a picture, as the document has one.
    pub(super) pictures: Vec<Vec<Used>>,
    /// It did not come to work, and is not started again.
    failed: bool,
}

impl Section {
    pub(super) fn new(name: &str, subjects: &[Subject]) -> Self {
        let measured = |subject: &Subject| Measured {
            node: Series::new(subject.name()),
            pairs: BTreeMap::new(),
            pictures: Vec::new(),
            failed: false,
        };
        Self {
            name: name.to_owned(),
            subjects: subjects.iter().map(measured).collect(),
        }
    }

    /// Whether the document has figures of this node.
    pub(super) fn is_documented(&self) -> bool {
        self.name.starts_with(DOCUMENTED)
    }

    pub(super) fn has_rounds(&self) -> bool {
        let mut subjects = self.subjects.iter();
        subjects.any(|measured| !measured.node.rounds.is_empty())
    }

    pub(super) fn has_failed(&self, subject: &Subject) -> bool {
        self.subject(subject.name()).is_some_and(|m| m.failed)
    }

    pub(super) fn push(&mut self, subject: &Subject, found: Found) {
        let Some(measured) = self.measured(subject) else {
            return;
        };
        let round = |figures: Figures| match &found.fault {
            None => Ok(figures),
            Some(why) => Err(why.clone()),
        };
        let earlier = measured.node.rounds.len();
        for (title, figures) in found.pairs {
            let pair = measured.pairs.entry(title).or_insert_with(|| {
                let mut series = Series::new(subject.name());
                // So that rounds have the same number everywhere.
                let absent = || Err("no lines".to_owned());
                series
                    .rounds
                    .extend(std::iter::repeat_with(absent).take(earlier));
                series
            });
            pair.push(round(figures));
        }
        measured.node.push(round(found.node));
        measured.pictures.push(found.processes);
    }

    pub(super) fn fail(&mut self, subject: &Subject, why: &str) {
        if let Some(measured) = self.measured(subject) {
            measured.node.push(Err(why.to_owned()));
            measured.pictures.push(Vec::new());
            measured.failed = true;
        }
    }

    pub(super) fn subject(&self, name: &str) -> Option<&Measured> {
        self.subjects
            .iter()
            .find(|measured| measured.node.subject == name)
    }

    fn measured(&mut self, subject: &Subject) -> Option<&mut Measured> {
        let mut measured = self.subjects.iter_mut();
        measured.find(|measured| measured.node.subject == subject.name())
    }

    /// The pairs of all subjects, each once.
    pub(super) fn titles(&self) -> Vec<&str> {
        let mut titles: Vec<&str> = Vec::new();
        for title in self
            .subjects
            .iter()
            .flat_map(|measured| measured.pairs.keys())
        {
            if !titles.contains(&title.as_str()) {
                titles.push(title);
            }
        }
        titles
    }

    /// The node's rows, then those of each pair.
    pub(super) fn rows(&self) -> Vec<Row> {
        let mut rows = Vec::new();
        for measured in self.subjects.iter().filter(|m| !m.node.rounds.is_empty()) {
            for mut row in measured.node.rows(&self.name, Some(PLACEMENT)) {
                let picture = match row.round {
                    Some(round) => measured.pictures.get(round - 1),
                    None => measured.picture(),
                };
                let picture = picture.filter(|processes| !processes.is_empty());
                if let (Some(processes), Some(fields)) = (picture, row.metrics.as_object_mut()) {
                    let processes: Value = processes.iter().map(Used::to_json).collect();
                    fields.insert("processes".to_owned(), processes);
                }
                if let (None, true, Some(fields)) =
                    (row.round, self.is_documented(), row.metrics.as_object_mut())
                {
                    let cpu_percent = json!(document::NODE_CPU_PERCENT);
                    let rss_bytes = json!(document::NODE_RSS_BYTES);
                    fields.insert("document_node_cpu_percent".to_owned(), cpu_percent);
                    fields.insert("document_node_rss_bytes".to_owned(), rss_bytes);
                }
                rows.push(row);
            }
        }
        for title in self.titles() {
            let case = format!("{} {}", short(title), self.name);
            for measured in &self.subjects {
                let Some(pair) = measured.pairs.get(title) else {
                    continue;
                };
                for mut row in pair.rows(&case, Some(PLACEMENT)) {
                    let documented = documented_us(title).filter(|_| row.round.is_none());
                    if let (Some(us), Some(fields)) = (documented, row.metrics.as_object_mut()) {
                        fields.insert("document_rtt_us".to_owned(), json!(us));
                    }
                    rows.push(row);
                }
            }
        }
        rows
    }
}

impl Measured {
    /// The processes of the last round that counts: the one whose picture is shown.
    pub(super) fn picture(&self) -> Option<&Vec<Used>> {
        let counted = self.node.rounds.iter().rposition(Result::is_ok);
        counted.and_then(|round| self.pictures.get(round))
    }
}

/// A pair's name as all benches have it, where it is one of the document's.
pub(super) fn short(title: &str) -> String {
    match case(title) {
        Some(case) => case.to_string(),
        None => title.to_ascii_lowercase(),
    }
}

/// What the document has for a pair: the median of its batches' averages.
pub(super) fn documented_us(title: &str) -> Option<f64> {
    case(title).and_then(|case| document::rtt_us(&case))
}

fn case(title: &str) -> Option<Case> {
    let mut cases = Case::OF_THE_DOCUMENT.into_iter();
    cases.find(|case| case.document_prefix() == title)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(rate: f64, fault: Option<&str>) -> Found {
        let title = "WAMP-UDS-RawSocket-MessagePack".to_owned();
        Found {
            node: Figures::new().with("start_ms", 9.0),
            pairs: BTreeMap::from([(title, Figures::new().with("calls_per_s", rate))]),
            processes: Vec::new(),
            fault: fault.map(str::to_owned),
        }
    }

    #[test]
    fn rows_are_of_the_node_and_of_each_pair() {
        let mut section = Section::new("example", &[Subject::Crosstie]);
        section.push(&Subject::Crosstie, found(10.0, None));
        section.push(&Subject::Crosstie, found(30.0, None));
        let rows = section.rows();
        let cases: Vec<&str> = rows.iter().map(|row| row.case.as_str()).collect();
        let pair = "uds-rawsocket-msgpack example";
        assert_eq!(cases, ["example", "example", "example", pair, pair, pair]);
        assert!(rows.iter().all(|row| row.valid));
        assert_eq!(rows[3].metrics["calls_per_s"], 20.0);
        assert_eq!(rows[3].metrics["document_rtt_us"], 483.0);
    }

    #[test]
    fn a_round_that_does_not_count_counts_nowhere() {
        let mut section = Section::new("example", &[Subject::Crosstie]);
        section.push(&Subject::Crosstie, found(10.0, Some("it ended")));
        section.push(&Subject::Crosstie, found(30.0, None));
        let rows = section.rows();
        assert!(!rows[0].valid && !rows[3].valid);
        assert_eq!(rows[3].metrics["calls_per_s"], 30.0);
        assert_eq!(rows[3].why, "round 1: it ended");
    }

    #[test]
    fn who_fails_is_not_started_again() {
        let mut section = Section::new("example", &[Subject::Crosstie, Subject::Plain]);
        section.fail(&Subject::Plain, "no");
        assert!(section.has_failed(&Subject::Plain));
        assert!(!section.has_failed(&Subject::Crosstie));
        assert_eq!(section.rows().len(), 2);
    }
}
