//! One case in one placement: its rounds side by side, and the rows they make in the JSON frame.

use serde_json::{Value, json};

use super::Bench;
use super::summary::Measured;
use crate::load::histogram::Spread;
use crate::machine::placement::Placement;
use crate::report::document;
use crate::report::json::{Row, metrics};
use crate::subject::case::Case;

/// One case in one placement, measured.
pub(super) struct Section {
    pub(super) case: Case,
    pub(super) placement: Placement,
    /// What kind of relay the floor was.
    pub(super) floor: String,
    /// The router, the floor, then peers.
    pub(super) measured: Vec<Measured>,
}

impl Section {
    fn floor(&self) -> Option<&Measured> {
        self.measured
            .iter()
            .find(|measured| measured.subject == "floor")
    }

    pub(super) fn rows(&self, bench: &Bench) -> Vec<Row> {
        let mut rows = Vec::new();
        for measured in &self.measured {
            let row = |round, metrics, fault: Option<String>| Row {
                case: self.case.to_string(),
                subject: measured.subject.clone(),
                placement: Some(self.placement.to_string()),
                round,
                metrics,
                valid: fault.is_none(),
                why: fault.unwrap_or_default(),
            };
            for (at, round) in measured.rounds.iter().enumerate() {
                rows.push(row(
                    Some(at + 1),
                    metrics(&round.metrics),
                    round.fault.clone(),
                ));
            }
            let why = measured.why();
            let mut sum = row(
                None,
                measured.metrics(),
                (!measured.is_valid()).then_some(why),
            );
            if let Some(fields) = sum.metrics.as_object_mut() {
                fields.extend(self.comparisons(bench, measured));
            }
            rows.push(sum);
        }
        rows
    }

    /// What only the sum of the rounds can say.
    fn comparisons(&self, bench: &Bench, measured: &Measured) -> Vec<(String, Value)> {
        let mut fields = Vec::new();
        if let Some(over_floor) = self.over_floor(measured) {
            fields.push(("p50_over_floor".to_owned(), json!(over_floor.median)));
        }
        if let Some(document_us) = document::rtt_us(&self.case) {
            fields.push(("document_rtt_us".to_owned(), json!(document_us)));
        }
        if bench.in_flight() > 1 {
            let bound = measured.driver_bound(bench.in_flight());
            fields.push(("driver_bound".to_owned(), json!(bound)));
        }
        fields
    }

    /// `None` for the floor itself, and beside a floor that does not count.
    pub(super) fn over_floor(&self, measured: &Measured) -> Option<Spread> {
        let floor = self.floor().filter(|floor| floor.suspect.is_none())?;
        if measured.subject == floor.subject {
            None
        } else {
            measured.p50_over(floor)
        }
    }
}
