//! One figure of many cases: a row for each, a mark for each subject at its median, a thin line
//! from its smallest to its largest round.

use super::axis::{Axis, Scale};
use super::canvas::{Beside, Canvas};
use super::role::{AXIS, GREY, GRID, INK, Role};
use crate::metric::{self, Unit, with_unit};
use crate::run::Spread;

/// One row; without marks it is the heading of those that follow.
#[derive(Clone, Debug)]
pub(crate) struct Rank {
    pub(crate) label: String,
    pub(crate) marks: Vec<Mark>,
}

impl Rank {
    pub(crate) fn heading(label: &str) -> Self {
        Self {
            label: label.to_owned(),
            marks: Vec::new(),
        }
    }
}

/// One subject in a row.
#[derive(Clone, Debug)]
pub(crate) struct Mark {
    pub(crate) name: String,
    pub(crate) role: Role,
    pub(crate) spread: Spread,
}

const WIDTH: u32 = 944;
const LEFT_MIN: f64 = 110.0;
const LEFT_MAX: f64 = 430.0;
const RIGHT: f64 = 36.0;
const TOP: f64 = 8.0;
const BOTTOM: f64 = 40.0;

/// Beyond this many subjects in a row their marks need more room.
const MARK_DISTANCE: f64 = 8.5;

/// The chart; `reference` is a value that all are compared with, such as 1 for the floor itself.
pub(crate) fn ranges(
    title: &str,
    caption: &str,
    ranks: &[Rank],
    unit: Unit,
    scale: Scale,
    reference: Option<f64>,
) -> String {
    let heights: Vec<f64> = ranks
        .iter()
        .map(|rank| (rank.marks.len() as f64 * MARK_DISTANCE + 14.0).max(23.0))
        .collect();
    // As wide as the longest label, by what a letter takes on average.
    let letters = ranks.iter().map(|rank| rank.label.chars().count()).max();
    let left = (letters.unwrap_or(0) as f64 * 6.3 + 24.0).clamp(LEFT_MIN, LEFT_MAX);
    let bottom = TOP + heights.iter().sum::<f64>();
    let mut canvas = Canvas::new(WIDTH, (bottom + BOTTOM).ceil() as u32);
    let right = f64::from(WIDTH) - RIGHT;
    let spreads = ranks
        .iter()
        .flat_map(|rank| &rank.marks)
        .map(|mark| mark.spread);
    let values: Vec<f64> = spreads
        .flat_map(|s| [s.min, s.max])
        .chain(reference)
        .collect();
    let along = Axis::around(&values, unit, scale, (left, right));
    for tick in &along.ticks {
        let x = along.at(*tick);
        canvas.rule((x, TOP), (x, bottom + 4.0), GRID, 1.0);
        let label = metric::tick(*tick, unit);
        canvas.text(&label, (x, bottom + 7.0), Beside::Below, 11.5, INK);
    }
    let middle = ((left + right) / 2.0, bottom + 24.0);
    canvas.text(caption, middle, Beside::Below, 11.0, GREY);
    if let Some(reference) = reference {
        let x = along.at(reference);
        canvas.rule((x, TOP), (x, bottom), INK, 1.2);
    }
    let mut top = TOP;
    for (rank, height) in ranks.iter().zip(heights) {
        let label = top + height / 2.0;
        if rank.marks.is_empty() {
            canvas.text(&rank.label, (0.0, label + 3.0), Beside::Right, 12.0, GREY);
        } else {
            canvas.text(&rank.label, (left - 12.0, label), Beside::Left, 12.0, INK);
        }
        let first = top + height / 2.0 - (rank.marks.len() as f64 - 1.0) / 2.0 * MARK_DISTANCE;
        for (at, mark) in rank.marks.iter().enumerate() {
            let y = first + at as f64 * MARK_DISTANCE;
            let Spread { median, min, max } = mark.spread;
            canvas.rule(
                (along.at(min), y),
                (along.at(max), y),
                mark.role.colour,
                1.4,
            );
            canvas.mark((along.at(median), y), mark.role, 4.2);
        }
        top += height;
        canvas.rule((left, top), (right, top), GRID, 0.5);
    }
    canvas.rule((left, bottom), (right, bottom), AXIS, 1.0);
    let described: Vec<String> = ranks.iter().map(|rank| describe(rank, unit)).collect();
    canvas.figure(title, &described.join("; "))
}

fn describe(rank: &Rank, unit: Unit) -> String {
    let marks = rank
        .marks
        .iter()
        .map(|mark| format!("{} {}", mark.name, with_unit(mark.spread.median, unit)));
    format!("{}: {}", rank.label, marks.collect::<Vec<_>>().join(", "))
}
