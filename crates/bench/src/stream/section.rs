//! One case in one placement: its rounds side by side, and the rows they make in the JSON frame.

use serde_json::{Value, json};

use super::Bench;
use super::case::{Case, Test};
use super::document;
use super::goals::{figure, reference};
use crate::figures::Series;
use crate::load::histogram::Spread;
use crate::machine::placement::Placement;
use crate::report::json::{FLOOR_SUSPECT, Row};
use crate::report::table::thousands;
use crate::subject::target::Endpoint;

/// One case in one placement, measured.
pub(super) struct Section {
    pub(super) case: Case,
    pub(super) placement: Placement,
    /// The server, the floor, the other floor, then a peer.
    pub(super) measured: Vec<Series>,
    /// Where each of them listened.
    pub(super) endpoints: Vec<Endpoint>,
}

/// Below this share of its core a server was not what held a throughput back.
const BUSY: f64 = 0.9;

impl Section {
    pub(super) fn floor(&self) -> Option<&Series> {
        self.measured
            .iter()
            .find(|series| series.subject == "floor")
    }

    /// `None` for the floor itself, and beside one that does not count.
    pub(super) fn over_floor(&self, series: &Series) -> Option<Spread> {
        let floor = self.floor().filter(|floor| floor.suspect.is_none())?;
        if series.subject == floor.subject {
            None
        } else {
            series.over(floor, figure(self.case.test))
        }
    }

    /// Of a throughput: whether something else than the server limited it. Where both share one
    /// core, neither is idle, and the figure is the sum of both.
    pub(super) fn driver_bound(&self, series: &Series) -> bool {
        let busy = series.median("server_busy_cores");
        !self.case.test.is_transactional()
            && self.placement != Placement::SameCore
            && busy.is_some_and(|busy| busy < BUSY)
    }

    /// Whether the floor was too slow to divide by, on a machine for which that is known.
    pub(super) fn suspect_floor(&mut self, bench: &Bench) {
        if bench.machine.cpu != reference::CPU
            || bench.options.request_bytes > 512
            || bench.network.description().is_some()
        {
            return;
        }
        let expected = reference::per_s(&self.case, self.placement);
        let reached = self
            .floor()
            .and_then(|floor| floor.median("transactions_per_s"));
        if let (Some(expected), Some(reached)) = (expected, reached)
            && reached < expected * reference::TOLERANCE
            && let Some(floor) = self.measured.iter_mut().find(|s| s.subject == "floor")
        {
            floor.suspect = Some(format!(
                "{FLOOR_SUSPECT}: {}/s where a machine of this kind when idle reaches {}",
                thousands(reached),
                thousands(expected)
            ));
        }
    }

    pub(super) fn document(&self, bench: &Bench) -> Vec<document::Figure> {
        let plain = bench.options.request_bytes == 1 || self.case.test == Test::Stream;
        match network(bench) {
            Some(network) if plain => document::figures(&self.case, network),
            _ => Vec::new(),
        }
    }

    pub(super) fn rows(&self, bench: &Bench) -> Vec<Row> {
        let case = self.case.to_string();
        let placement = self.placement.to_string();
        let mut rows = Vec::new();
        for series in &self.measured {
            let mut own = series.rows(&case, Some(&placement));
            let summary = own.iter_mut().find(|row| row.round.is_none());
            if let Some(Value::Object(fields)) = summary.map(|row| &mut row.metrics) {
                fields.extend(self.comparisons(bench, series));
            }
            rows.extend(own);
        }
        rows
    }

    /// What only all rounds together can say.
    fn comparisons(&self, bench: &Bench, series: &Series) -> Vec<(String, Value)> {
        let mut fields = Vec::new();
        let mut add = |name: &str, value| fields.push((name.to_owned(), value));
        if let Some(ratio) = self.over_floor(series) {
            add(
                &format!("{}_over_floor", figure(self.case.test)),
                json!(ratio.median),
            );
        }
        if !self.case.test.is_transactional() {
            add("driver_bound", json!(self.driver_bound(series)));
        }
        for figure in self.document(bench) {
            add(
                &format!("document_{}_per_s", figure.server),
                json!(figure.per_s),
            );
        }
        fields
    }
}

/// The document's network that is like ours; it has none with a link of a given delay.
pub(super) fn network(bench: &Bench) -> Option<document::Network> {
    let options = &bench.options.network;
    match (&options.link, options.netns) {
        (Some(_), _) => None,
        (None, false) => Some(document::Network::Loopback),
        (None, true) => Some(document::Network::TenGigabit),
    }
}
