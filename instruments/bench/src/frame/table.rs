//! An instrument's table as data: a head, a figure, its format.

use std::fmt;

use super::section::{FLOOR, Section};
use crate::figures::Series;
use crate::report::table::{known, number, spread};

pub(crate) type Form = fn(f64) -> String;

pub(crate) struct Column {
    pub(super) head: String,
    cell: Cell,
    form: Form,
}

enum Cell {
    Median(&'static str),
    /// The median, and below it the smallest and the largest.
    Spread(&'static str),
    /// The same for a rate that a driver may have limited.
    Rate(&'static str),
    /// The largest of all rounds.
    Largest(&'static str),
    /// All rounds together.
    Sum(&'static str),
    /// Round by round, over another subject's.
    Over(&'static str, &'static str),
}

impl Column {
    fn new(head: impl Into<String>, cell: Cell, form: Form) -> Self {
        Self {
            head: head.into(),
            cell,
            form,
        }
    }

    pub(crate) fn median(head: impl Into<String>, figure: &'static str, form: Form) -> Self {
        Self::new(head, Cell::Median(figure), form)
    }

    pub(crate) fn spread(head: impl Into<String>, figure: &'static str, form: Form) -> Self {
        Self::new(head, Cell::Spread(figure), form)
    }

    pub(crate) fn rate(head: impl Into<String>, figure: &'static str, form: Form) -> Self {
        Self::new(head, Cell::Rate(figure), form)
    }

    pub(crate) fn largest(head: impl Into<String>, figure: &'static str, form: Form) -> Self {
        Self::new(head, Cell::Largest(figure), form)
    }

    pub(crate) fn sum(head: impl Into<String>, figure: &'static str, form: Form) -> Self {
        Self::new(head, Cell::Sum(figure), form)
    }

    pub(crate) fn over_floor(head: impl Into<String>, figure: &'static str) -> Self {
        Self::over(head, FLOOR, figure)
    }

    pub(crate) fn over(
        head: impl Into<String>,
        subject: &'static str,
        figure: &'static str,
    ) -> Self {
        Self::new(head, Cell::Over(subject, figure), number)
    }

    pub(super) fn cell<C: fmt::Display>(
        &self,
        section: &Section<C>,
        series: &Series,
        bound: Option<&str>,
    ) -> String {
        let form = self.form;
        match self.cell {
            Cell::Median(figure) => known(series.median(figure), form),
            Cell::Spread(figure) => spread(series.spread(figure), form),
            Cell::Rate(figure) => {
                let rate = spread(series.spread(figure), form);
                match bound {
                    Some(bound) => format!("{rate}\n{bound}"),
                    None => rate,
                }
            }
            Cell::Largest(figure) => known(series.spread(figure).map(|spread| spread.max), form),
            Cell::Sum(figure) => known(series.sum(figure), form),
            Cell::Over(other, figure) => spread(section.over(series, other, figure), form),
        }
    }
}
