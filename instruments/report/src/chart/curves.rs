//! One figure over another: rate and latency, workers and rate.

use super::axis::{Axis, Scale};
use super::canvas::{Beside, Canvas, Form};
use super::role::{AXIS, GREY, GRID, INK, Role};
use crate::metric::{self, Unit, with_unit};

/// One subject's points, by ascending x.
#[derive(Clone, Debug)]
pub(crate) struct Curve {
    pub(crate) name: String,
    pub(crate) role: Role,
    pub(crate) points: Vec<(f64, f64)>,
    /// Points that are not a series, such as different load profiles, are not joined.
    pub(crate) joined: bool,
}

/// The figure along one side.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Side<'a> {
    pub(crate) label: &'a str,
    pub(crate) unit: Unit,
    pub(crate) scale: Scale,
}

const WIDTH: u32 = 944;
const HEIGHT: u32 = 330;
const LEFT: f64 = 76.0;
const RIGHT: f64 = 24.0;
const TOP: f64 = 26.0;
const BOTTOM: f64 = 42.0;

/// The chart.
pub(crate) fn curves(title: &str, curves: &[Curve], x: Side<'_>, y: Side<'_>) -> String {
    Form::both(|form| drawn(form, title, curves, x, y))
}

fn drawn(form: Form, title: &str, curves: &[Curve], x: Side<'_>, y: Side<'_>) -> String {
    let width = form.width(WIDTH);
    let mut canvas = Canvas::new(width, HEIGHT);
    let (right, bottom) = (f64::from(width) - RIGHT, f64::from(HEIGHT) - BOTTOM);
    let all = || curves.iter().flat_map(|curve| &curve.points);
    let xs: Vec<f64> = all().map(|point| point.0).collect();
    let ys: Vec<f64> = all().map(|point| point.1).collect();
    let mut along = Axis::around(&xs, x.unit, x.scale, (LEFT, right - 8.0));
    if x.unit == Unit::Number {
        along.prefer(&xs);
    }
    let up = Axis::around(&ys, y.unit, y.scale, (bottom, TOP));
    for tick in &up.ticks {
        let at = up.at(*tick);
        canvas.rule((LEFT, at), (right, at), GRID, 1.0);
        let label = metric::tick(*tick, y.unit);
        canvas.text(&label, (LEFT - 7.0, at), Beside::Left, 11.5, INK);
    }
    for tick in &along.ticks {
        let at = along.at(*tick);
        canvas.rule((at, bottom), (at, bottom + 4.0), AXIS, 1.0);
        let label = metric::tick(*tick, x.unit);
        canvas.text(&label, (at, bottom + 7.0), Beside::Below, 11.5, INK);
    }
    canvas.rule((LEFT, bottom), (right, bottom), AXIS, 1.0);
    let middle = ((LEFT + right) / 2.0, bottom + 24.0);
    canvas.text(x.label, middle, Beside::Below, 11.0, GREY);
    canvas.text(y.label, (4.0, 9.0), Beside::Right, 11.0, GREY);
    for curve in curves.iter().rev() {
        let points = curve.points.iter().map(|(x, y)| (along.at(*x), up.at(*y)));
        let points: Vec<_> = points.collect();
        if curve.joined {
            canvas.line(&points, curve.role, 2.0);
        }
        for point in points {
            canvas.mark(point, curve.role, 4.0);
        }
    }
    let described: Vec<String> = curves.iter().map(|curve| describe(curve, x, y)).collect();
    canvas.figure(form, title, &described.join("; "))
}

fn describe(curve: &Curve, x: Side<'_>, y: Side<'_>) -> String {
    let points = curve.points.iter().map(|point| {
        let (at, value) = (with_unit(point.0, x.unit), with_unit(point.1, y.unit));
        format!("{value} at {at}")
    });
    format!("{}: {}", curve.name, points.collect::<Vec<_>>().join(", "))
}
