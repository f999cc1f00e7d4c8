//! The distribution of a latency: its percentiles, spread so that each further nine takes as much room as the one
//! before.

use super::axis::{Axis, Scale};
use super::canvas::{Beside, Canvas, Form};
use super::role::{AXIS, GRID, INK, Role};
use crate::metric::{self, Unit, with_unit};

/// One subject's latency.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) name: String,
    pub(crate) role: Role,
    /// Share of all operations that took at most so many microseconds; the longest at 1.
    pub(crate) points: Vec<(f64, f64)>,
}

const WIDTH: u32 = 440;
const HEIGHT: u32 = 270;
const LEFT: f64 = 62.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 40.0;

/// The labels along the axis: number of nines, and its name.
const NINES: [(f64, &str); 5] = [
    (0.301, "50 %"),
    (1.0, "90 %"),
    (2.0, "99 %"),
    (3.0, "99.9 %"),
    (NINES_MAX, "longest"),
];
const NINES_MAX: f64 = 4.0;

/// The chart of one case, on a scale with room for `values`; `flat` are single figures from elsewhere.
pub(crate) fn percentiles(title: &str, lines: &[Line], flat: &[Line], values: &[f64]) -> String {
    Form::both(|form| drawn(form, title, lines, flat, values))
}

fn drawn(form: Form, title: &str, lines: &[Line], flat: &[Line], values: &[f64]) -> String {
    let width = form.width(WIDTH);
    let mut canvas = Canvas::new(width, HEIGHT);
    let (right, bottom) = (f64::from(width) - RIGHT, f64::from(HEIGHT) - BOTTOM);
    let all = || lines.iter().chain(flat);
    let up = Axis::around(
        values,
        Unit::Microseconds,
        Scale::Logarithmic,
        (bottom, TOP),
    );
    let along = |nines: f64| LEFT + 14.0 + (right - LEFT - 28.0) * (nines - 0.301) / 3.699;
    for tick in &up.ticks {
        let y = up.at(*tick);
        canvas.rule((LEFT, y), (right, y), GRID, 1.0);
        let label = metric::tick(*tick, Unit::Microseconds);
        canvas.text(&label, (LEFT - 7.0, y), Beside::Left, 11.5, INK);
    }
    for (nines, label) in NINES {
        let x = along(nines);
        canvas.rule((x, bottom), (x, bottom + 4.0), AXIS, 1.0);
        canvas.text(label, (x, bottom + 7.0), Beside::Below, 11.5, INK);
    }
    canvas.rule((LEFT, bottom), (right, bottom), AXIS, 1.0);
    let caption = ((LEFT + right) / 2.0, bottom + 23.0);
    canvas.text(
        "of all operations took at most",
        caption,
        Beside::Below,
        11.0,
        super::role::GREY,
    );
    for line in flat {
        if let Some((_, value)) = line.points.first() {
            let y = up.at(*value);
            canvas.line(&[(LEFT, y), (right, y)], line.role, 1.5);
            canvas.mark((along(0.301), y), line.role, 4.0);
        }
    }
    // Ours is drawn last, above the others.
    for line in lines.iter().rev() {
        let points: Vec<_> = line
            .points
            .iter()
            .map(|(quantile, value)| (along(nines(*quantile)), up.at(*value)))
            .collect();
        canvas.line(&points, line.role, 2.0);
        for point in points {
            canvas.mark(point, line.role, 3.6);
        }
    }
    let described: Vec<String> = all().map(describe).collect();
    canvas.figure(form, title, &described.join("; "))
}

/// The number of nines of a quantile: 1 for 0.9, 2 for 0.99. The longest has infinitely many.
fn nines(quantile: f64) -> f64 {
    (-(1.0 - quantile).log10()).clamp(0.301, NINES_MAX)
}

fn describe(line: &Line) -> String {
    let points = line.points.iter().map(|(quantile, value)| {
        let value = with_unit(*value, Unit::Microseconds);
        if *quantile >= 1.0 {
            format!("longest {value}")
        } else {
            format!("{} % {value}", metric::number(quantile * 100.0))
        }
    });
    format!("{}: {}", line.name, points.collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nines_are_counted() {
        for (quantile, expected) in [(0.5, 0.301), (0.9, 1.0), (0.999, 3.0), (1.0, NINES_MAX)] {
            assert!((nines(quantile) - expected).abs() < 1e-3);
        }
    }
}
