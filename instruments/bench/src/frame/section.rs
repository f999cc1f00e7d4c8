//! One case in one placement: all subjects' rounds side by side.

use std::fmt;

use serde_json::Value;

use crate::figures::{Figures, Series};
use crate::load::Spread;
use crate::machine::Placement;
use crate::report::json::Row;
use crate::report::table::number;

/// The name of our own subject in every results file, ...
pub(crate) const OWN: &str = "crosstie";
/// ... and of the smallest program that does the same work.
pub(crate) const FLOOR: &str = "floor";

/// Limits of a rate other than the subject.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limit {
    /// Figures of cores kept busy: the subject's, and the driver's if both share a core. Their sum is compared with ...
    pub(crate) busy: &'static [&'static str],
    /// ... as many cores as the subject could have kept busy.
    pub(crate) cores: f64,
}

/// Below this share of its cores a subject did not limit the rate.
const BUSY: f64 = 0.9;

#[derive(Clone, Debug)]
pub(crate) struct Section<C> {
    pub(crate) case: C,
    pub(crate) placement: Option<Placement>,
    /// Cores of the servers.
    pub(crate) server_cores: usize,
    /// The main subject, the floor if there is one, others.
    pub(crate) series: Vec<Series>,
    /// Texts that only measuring gave, a line each.
    pub(crate) said: Vec<String>,
}

impl<C: fmt::Display> Section<C> {
    /// `case · placement`.
    pub(crate) fn title(&self) -> String {
        match self.placement {
            Some(placement) => format!("{} · {placement}", self.case),
            None => self.case.to_string(),
        }
    }

    /// The main subject's.
    pub(crate) fn own(&self) -> Option<&Series> {
        self.series.first()
    }

    pub(crate) fn subject(&self, name: &str) -> Option<&Series> {
        self.series.iter().find(|series| series.subject == name)
    }

    /// Round by round, a figure over another subject's; `None` for a subject over itself, and for a divisor that is
    /// zero or unknown.
    pub(crate) fn over(&self, series: &Series, other: &str, figure: &str) -> Option<Spread> {
        let other = self
            .subject(other)
            .filter(|other| other.suspect.is_none())?;
        match series.subject == other.subject {
            true => None,
            false => series.over(other, figure),
        }
    }

    /// These figures over the floor's, as `…_over_floor`.
    pub(crate) fn over_floor(&self, series: &Series, figures: &[&str]) -> Figures {
        let mut over = Figures::new();
        for figure in figures {
            if let Some(ratio) = self.over(series, FLOOR, figure) {
                over.set(&format!("{figure}_over_floor"), ratio.median);
            }
        }
        over
    }

    /// The machine's other load, as a line below a table.
    pub(crate) fn crowd(&self) -> Option<String> {
        let foreign = self
            .series
            .iter()
            .filter_map(|one| one.median("foreign_busy_cores"));
        let most = number(foreign.reduce(f64::max)?);
        Some(format!(
            "  the rest of the machine: at most {most} cores busy"
        ))
    }

    /// The rows of the results file. `more` are the figures of all rounds together.
    pub(super) fn rows(
        &self,
        is_single: bool,
        more: impl Fn(&Series) -> Figures,
        is_bound: impl Fn(&Series) -> Option<bool>,
    ) -> Vec<Row> {
        let (case, placement) = (self.case.to_string(), self.placement.map(|p| p.to_string()));
        let mut rows = Vec::new();
        for series in &self.series {
            let mut own = series.rows(&case, placement.as_deref());
            if let Some(row) = own.first_mut() {
                row.metrics = series.summary().but(more(series)).metrics();
                if let (Some(is_bound), Value::Object(fields)) =
                    (is_bound(series), &mut row.metrics)
                {
                    fields.insert("driver_bound".to_owned(), is_bound.into());
                }
            }
            own.truncate(if is_single { 1 } else { own.len() });
            rows.extend(own);
        }
        rows
    }
}

impl Limit {
    /// Whether something other than the subject limited its rate. Unknown without its processor time.
    pub(super) fn is_elsewhere(&self, series: &Series) -> Option<bool> {
        let busy: Option<f64> = self.busy.iter().map(|name| series.median(name)).sum();
        Some(busy? < BUSY * self.cores)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_that_idles_is_not_the_limit() {
        #[track_caller]
        fn check(busy: f64, driver: f64, limit: Limit, expected: bool) {
            let mut series = Series::new(OWN);
            series.push(Ok(Figures::new().with("busy", busy).with("driver", driver)));
            assert_eq!(limit.is_elsewhere(&series), Some(expected));
        }
        let alone = Limit {
            busy: &["busy"],
            cores: 1.0,
        };
        let both = Limit {
            busy: &["busy", "driver"],
            cores: 1.0,
        };
        check(0.95, 0.0, alone, false);
        check(0.80, 0.9, alone, true);
        check(0.50, 0.45, both, false);
        check(
            1.0,
            0.0,
            Limit {
                cores: 2.0,
                ..alone
            },
            true,
        );
        assert_eq!(alone.is_elsewhere(&Series::new(OWN)), None);
    }

    #[test]
    fn nothing_is_divided_by_a_floor_that_is_suspect() {
        let series = |name: &str, value| {
            let mut series = Series::new(name);
            series.push(Ok(Figures::new().with("x", value)));
            series
        };
        let mut section = Section {
            case: "case",
            placement: Some(Placement::Split),
            server_cores: 1,
            series: vec![series(OWN, 3.0), series(FLOOR, 2.0)],
            said: Vec::new(),
        };
        let over =
            |section: &Section<&str>, of: usize| section.over(&section.series[of], FLOOR, "x");
        assert_eq!(over(&section, 0).map(|ratio| ratio.median), Some(1.5));
        assert_eq!(over(&section, 1), None);
        section.series[1].suspect = Some("floor suspect".to_owned());
        assert_eq!(over(&section, 0), None);
        assert_eq!(section.title(), "case · split");
    }
}
