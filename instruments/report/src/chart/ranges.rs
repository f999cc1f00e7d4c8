//! One figure of many cases: a row for each, a mark for each subject at its median, a thin line from its smallest to
//! its largest round.

use plotters::style::RGBColor;

use super::axis::{Axis, Scale};
use super::canvas::{Beside, Canvas, Form};
use super::role::{AXIS, GREY, GRID, INK, Role};
use crate::metric::{self, Unit, with_unit};
use crate::run::Spread;

/// One row; without marks it is the heading of the following ones.
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

/// The height of a label above its marks.
const LABEL_HEIGHT: f64 = 14.0;

/// Beyond this many subjects in a row their marks need more room.
const MARK_DISTANCE: f64 = 8.5;

/// The chart; `reference` is a value for comparison, such as 1 for the floor itself.
pub(crate) fn ranges(
    title: &str,
    caption: &str,
    ranks: &[Rank],
    unit: Unit,
    scale: Scale,
    reference: Option<f64>,
) -> String {
    Form::both(|form| drawn(form, title, caption, ranks, unit, scale, reference))
}

fn drawn(
    form: Form,
    title: &str,
    caption: &str,
    ranks: &[Rank],
    unit: Unit,
    scale: Scale,
    reference: Option<f64>,
) -> String {
    let above = above(form);
    let height = |rank: &Rank| match rank.marks.len() {
        0 => 23.0,
        marks => above + (marks as f64 * MARK_DISTANCE + 14.0).max(23.0),
    };
    let heights: Vec<f64> = ranks.iter().map(height).collect();
    // As wide as the longest label, by the mean width of a letter.
    let letters = ranks.iter().map(|rank| rank.label.chars().count()).max();
    let left = match form {
        Form::Wide => (letters.unwrap_or(0) as f64 * 6.3 + 24.0).clamp(LEFT_MIN, LEFT_MAX),
        Form::Narrow => 14.0,
    };
    let bottom = TOP + heights.iter().sum::<f64>();
    let width = form.width(WIDTH);
    let mut canvas = Canvas::new(width, (bottom + BOTTOM).ceil() as u32);
    let right = f64::from(width) - RIGHT;
    let spreads = ranks
        .iter()
        .flat_map(|rank| &rank.marks)
        .map(|mark| mark.spread);
    let values: Vec<f64> = spreads
        .flat_map(|s| [s.min, s.max])
        .chain(reference)
        .collect();
    let along = Axis::around(&values, unit, scale, (left, right));
    let spans = spans(form, ranks, &heights);
    for tick in &along.ticks {
        let x = along.at(*tick);
        across(&mut canvas, x, &spans, GRID, 1.0);
        let label = metric::tick(*tick, unit);
        canvas.text(&label, (x, bottom + 7.0), Beside::Below, 11.5, INK);
    }
    let middle = ((left + right) / 2.0, bottom + 24.0);
    canvas.text(caption, middle, Beside::Below, 11.0, GREY);
    if let Some(reference) = reference {
        across(&mut canvas, along.at(reference), &spans, INK, 1.2);
    }
    let mut top = TOP;
    for (rank, height) in ranks.iter().zip(heights) {
        let middle = top + height / 2.0;
        match form {
            Form::Narrow if !rank.marks.is_empty() => {
                let at = (0.0, top + LABEL_HEIGHT / 2.0 + 2.0);
                // A long one in smaller letters, by the mean width of a letter.
                let fitting = f64::from(width) / (rank.label.chars().count() as f64 * 0.56);
                let size = fitting.clamp(9.0, 11.5);
                canvas.text(&rank.label, at, Beside::Right, size, INK);
            }
            _ if rank.marks.is_empty() => {
                canvas.text(&rank.label, (0.0, middle + 3.0), Beside::Right, 12.0, GREY);
            }
            _ => canvas.text(&rank.label, (left - 12.0, middle), Beside::Left, 12.0, INK),
        }
        marks(&mut canvas, &along, rank, middle + above / 2.0);
        top += height;
        canvas.rule((left, top), (right, top), GRID, 0.5);
    }
    canvas.rule((left, bottom), (right, bottom), AXIS, 1.0);
    let described: Vec<String> = ranks.iter().map(|rank| describe(rank, unit)).collect();
    canvas.figure(form, title, &described.join("; "))
}

/// The height of a label above its marks, if there is no room beside them.
fn above(form: Form) -> f64 {
    match form {
        Form::Wide => 0.0,
        Form::Narrow => LABEL_HEIGHT,
    }
}

/// A row's marks, around this height.
fn marks(canvas: &mut Canvas, along: &Axis, rank: &Rank, middle: f64) {
    let first = middle - (rank.marks.len() as f64 - 1.0) / 2.0 * MARK_DISTANCE;
    for (at, mark) in rank.marks.iter().enumerate() {
        let y = first + at as f64 * MARK_DISTANCE;
        let Spread { median, min, max } = mark.spread;
        let (min, max) = (along.at(min), along.at(max));
        canvas.rule((min, y), (max, y), mark.role.colour, 1.4);
        canvas.mark((along.at(median), y), mark.role, 4.2);
    }
}

/// A rule across the grid at one value.
fn across(canvas: &mut Canvas, x: f64, spans: &[(f64, f64)], colour: RGBColor, width: f64) {
    for (from, to) in spans {
        canvas.rule((x, *from), (x, *to), colour, width);
    }
}

/// The extent of the grid: from top to bottom, or beside the marks only, so that it crosses no label.
fn spans(form: Form, ranks: &[Rank], heights: &[f64]) -> Vec<(f64, f64)> {
    let mut top = TOP;
    if form == Form::Wide {
        return vec![(TOP, TOP + heights.iter().sum::<f64>() + 4.0)];
    }
    let mut spans = Vec::new();
    for (rank, height) in ranks.iter().zip(heights) {
        if !rank.marks.is_empty() {
            spans.push((top + LABEL_HEIGHT + 3.0, top + height));
        }
        top += height;
    }
    spans
}

fn describe(rank: &Rank, unit: Unit) -> String {
    let marks = rank
        .marks
        .iter()
        .map(|mark| format!("{} {}", mark.name, with_unit(mark.spread.median, unit)));
    format!("{}: {}", rank.label, marks.collect::<Vec<_>>().join(", "))
}
