//! One case at one place: its rounds side by side, and the rows they make in the JSON frame.

use std::time::Duration;

use serde_json::{Value, json};

use super::case::Case;
use super::document;
use super::topology::Topology;
use crate::broker::subjects::FLOOR_NAME;
use crate::figures::Series;
use crate::link::units;
use crate::load::histogram::Spread;
use crate::machine::placement::Placement;
use crate::report::json::Row;

/// One case, measured.
pub(super) struct Section {
    pub(super) case: Case,
    pub(super) placement: Placement,
    /// With which line between the machines; nothing where rates are measured.
    pub(super) way: Option<(Topology, Duration)>,
    /// The broker that the run is about, the floor where there is one, peers.
    pub(super) measured: Vec<Series>,
}

impl Section {
    pub(super) fn name(&self) -> String {
        let (operation, driver) = (self.case.operation, self.case.driver.name());
        match self.way {
            None => self.case.to_string(),
            Some((Topology::Together, _)) => format!("{operation}, {driver}, together"),
            Some((topology, delay)) => {
                let delay = units::written(delay);
                format!("{operation}, {driver}, {topology}, {delay}")
            }
        }
    }

    /// A run that was ended has measured some sections and not others.
    pub(super) fn has_rounds(&self) -> bool {
        self.measured.iter().any(|series| !series.rounds.is_empty())
    }

    pub(super) fn subject(&self, name: &str) -> Option<&Series> {
        self.measured.iter().find(|series| series.subject == name)
    }

    pub(super) fn own(&self) -> Option<&Series> {
        self.measured.first()
    }

    /// Round by round, one figure over another subject's; nothing of a subject over itself.
    pub(super) fn over(&self, series: &Series, other: &str, figure: &str) -> Option<Spread> {
        let other = self.subject(other)?;
        match series.subject == other.subject {
            true => None,
            false => series.over(other, figure),
        }
    }

    /// Operations per second that the delay allows.
    pub(super) fn limit_per_s(&self) -> Option<f64> {
        let (topology, delay) = self.way?;
        topology.limit_per_s(self.case.operation, delay)
    }

    pub(super) fn over_limit(&self, series: &Series) -> Option<f64> {
        Some(series.median("operations_per_s")? / self.limit_per_s()?)
    }

    pub(super) fn document(&self) -> Option<document::Figure> {
        let (topology, delay) = self.way?;
        document::figure(topology, self.case.operation, delay)
    }

    pub(super) fn rows(&self) -> Vec<Row> {
        let mut rows = Vec::new();
        for series in &self.measured {
            if series.rounds.is_empty() {
                continue;
            }
            let mut own = series.rows(&self.name(), Some(&self.placement.to_string()));
            let summary = own.iter_mut().find(|row| row.round.is_none());
            if let Some(Value::Object(fields)) = summary.map(|row| &mut row.metrics) {
                fields.extend(self.comparisons(series));
            }
            rows.extend(own);
        }
        rows
    }

    /// What only all rounds together can say.
    fn comparisons(&self, series: &Series) -> Vec<(String, Value)> {
        let mut fields = Vec::new();
        let mut add = |name: &str, value: Option<f64>| {
            if let Some(value) = value {
                fields.push((name.to_owned(), json!(value)));
            }
        };
        let over_floor = self.over(series, FLOOR_NAME, "operations_per_s");
        add(
            "operations_per_s_over_floor",
            over_floor.map(|ratio| ratio.median),
        );
        if self.way.is_some() {
            let least = |name| series.spread(name).map(|spread| spread.min);
            add("operations_per_s_min", least("operations_per_s"));
            add("with_setup_per_s_min", least("with_setup_per_s"));
            add("limit_per_s", self.limit_per_s());
            add("over_limit", self.over_limit(series));
            let document = self.document();
            add(
                "document_one_core_per_s",
                document.map(|figure| figure.one_core),
            );
            add(
                "document_eight_cores_per_s",
                document.map(|figure| figure.eight_cores),
            );
        }
        fields
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::Figures;
    use crate::oslo::case::{Driver, Operation};

    #[test]
    fn a_delayed_case_has_its_limit() {
        let mut own = Series::new("crosstie");
        for (per_s, clock) in [(19.8, 17.0), (19.9, 18.0), (19.7, 16.0)] {
            let figures = Figures::new().with("operations_per_s", per_s);
            own.push(Ok(figures.with("with_setup_per_s", clock)));
        }
        let section = Section {
            case: Case {
                operation: Operation::Call,
                driver: Driver::Native,
            },
            placement: Placement::Split,
            way: Some((Topology::RemoteClient, Duration::from_millis(50))),
            measured: vec![own],
        };
        assert_eq!(section.name(), "call, native, remote client, 50 ms");
        let rows = section.rows();
        assert_eq!(rows.len(), 4);
        let metrics = &rows[0].metrics;
        assert_eq!(metrics["limit_per_s"], 20.0);
        assert_eq!(metrics["over_limit"], 0.99);
        assert_eq!(metrics["with_setup_per_s_min"], 16.0);
        assert_eq!(metrics["document_one_core_per_s"], 15.0);
    }
}
