//! One case in one placement: its rounds side by side, and the rows they make in the JSON frame.

use serde_json::{Value, json};

use super::case::Case;
use crate::broker::subjects::FLOOR_NAME;
use crate::figures::Series;
use crate::load::histogram::Spread;
use crate::machine::placement::Placement;
use crate::report::json::Row;

/// One case in one placement, measured.
pub(super) struct Section {
    pub(super) case: Case,
    pub(super) placement: Placement,
    /// The broker that the run is about, the floor where there is one, peers.
    pub(super) measured: Vec<Series>,
}

/// Below this share of its core a broker was not what held the rate back.
const BUSY: f64 = 0.9;

impl Section {
    /// A run that was ended has measured some sections and not others.
    pub(super) fn has_rounds(&self) -> bool {
        self.measured.iter().any(|series| !series.rounds.is_empty())
    }

    pub(super) fn subject(&self, name: &str) -> Option<&Series> {
        self.measured.iter().find(|series| series.subject == name)
    }

    /// Round by round, one figure over another subject's; nothing of a subject over itself.
    pub(super) fn over(&self, series: &Series, other: &str, figure: &str) -> Option<Spread> {
        let other = self.subject(other)?;
        match series.subject == other.subject {
            true => None,
            false => series.over(other, figure),
        }
    }

    /// Whether something else than the broker limited the rate. Where both share one core, neither
    /// is idle; and who waits for a disk is not waiting for the driver.
    pub(super) fn is_driver_bound(&self, series: &Series) -> bool {
        let busy = series.median("broker_busy_cores");
        !self.case.is_durable()
            && self.placement != Placement::SameCore
            && busy.is_some_and(|busy| busy < BUSY)
    }

    pub(super) fn rows(&self) -> Vec<Row> {
        let mut rows = Vec::new();
        for series in &self.measured {
            if series.rounds.is_empty() {
                continue;
            }
            let (case, placement) = (self.case.to_string(), self.placement.to_string());
            let mut own = series.rows(&case, Some(&placement));
            let summary = own.iter_mut().find(|row| row.round.is_none());
            if let Some(Value::Object(fields)) = summary.map(|row| &mut row.metrics) {
                let is_bound = json!(self.is_driver_bound(series));
                fields.insert("driver_bound".to_owned(), is_bound);
                if let Some(over) = self.over(series, FLOOR_NAME, "messages_per_s") {
                    let name = "messages_per_s_over_floor".to_owned();
                    fields.insert(name, json!(over.median));
                }
            }
            rows.extend(own);
        }
        rows
    }
}
