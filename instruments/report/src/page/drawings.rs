//! The charts of one run: its headlines over all cases, its latencies, its curves.

use maud::{Markup, PreEscaped, html};

use super::words;
use crate::chart::{
    Curve, Line, Mark, Rank, Role, Roles, Scale, Side, curves, legend_mark, percentiles, ranges,
};
use crate::document::figures_for;
use crate::instrument::{columns, headlines};
use crate::metric::{self, Metric, Unit};
use crate::run::{Group, Run, Spread, each_once};

/// Beyond this many cases a distribution for each is too much to read.
const DISTRIBUTIONS_MAX: usize = 8;

pub(super) fn drawings(run: &Run, roles: &Roles) -> Markup {
    // The table's latencies are drawn too, in its order.
    let (mut names, rest) = columns(run);
    let latencies: Vec<&str> = names.clone();
    names.extend(rest);
    let latencies = metric::percentiles(&names)
        .into_iter()
        .filter(|(_, points)| points.iter().any(|(_, name)| latencies.contains(name)));
    html! {
        @for headline in headlines(run) { (headline_chart(run, headline, roles)) }
        @for (latency, points) in latencies {
            (distributions(run, latency, &points, roles))
        }
        (pairings(run, roles))
        (lists(run))
    }
}

/// The subjects of a chart, each once.
pub(super) fn legend<'a>(subjects: impl Iterator<Item = (&'a str, Role)>) -> Markup {
    html! {
        ul.legend {
            @for (name, role) in each_once(subjects) {
                li { (PreEscaped(legend_mark(role))) (name) }
            }
        }
    }
}

/// One figure over all cases.
fn headline_chart(run: &Run, name: &str, roles: &Roles) -> Markup {
    let metric = Metric::of(name);
    let ranks = run.groups.iter().map(|group| Rank {
        label: words::group(group),
        marks: marks(run, group, name, roles),
    });
    let ranks: Vec<Rank> = ranks.filter(|rank| !rank.marks.is_empty()).collect();
    if ranks.is_empty() {
        return html! {};
    }
    let marks = || ranks.iter().flat_map(|rank| &rank.marks);
    let scale = scale(marks().map(|mark| mark.spread.median));
    let better = if metric.less_is_better() {
        "less is better"
    } else {
        "more is better"
    };
    let logarithmic = match scale {
        Scale::Linear => "",
        Scale::Logarithmic => ", logarithmic",
    };
    let title = sentence(&metric.title());
    let caption = format!("{title}{logarithmic} ({better})");
    let chart = ranges(&title, &caption, &ranks, metric.unit, scale, None);
    html! {
        figure {
            figcaption { strong { (title) "." } " Median, and from the smallest to the largest round." }
            (legend(marks().map(|mark| (mark.name.as_str(), mark.role))))
            (PreEscaped(chart))
        }
    }
}

fn marks(run: &Run, group: &Group, name: &str, roles: &Roles) -> Vec<Mark> {
    let own = group
        .subjects
        .iter()
        .filter(|subject| subject.valid)
        .filter_map(|subject| {
            Some(Mark {
                name: subject.name.clone(),
                role: roles.role(&subject.name),
                spread: *subject.figures.get(name)?,
            })
        });
    let mut marks: Vec<Mark> = own.collect();
    if !marks.is_empty() {
        let documents = figures_for(run, group).into_iter().filter_map(|figures| {
            let value = figures.typical(name)?;
            Some(Mark {
                name: figures.subject,
                role: Role::DOCUMENT,
                spread: Spread::exactly(value),
            })
        });
        marks.extend(documents);
    }
    marks
}

/// Linear from zero while all values can be distinguished on it.
fn scale(values: impl Iterator<Item = f64>) -> Scale {
    let spread = Spread::of(values.filter(|value| *value > 0.0));
    match spread {
        Some(spread) if spread.max / spread.min > 12.0 => Scale::Logarithmic,
        _ => Scale::Linear,
    }
}

/// The percentiles of one latency, case by case.
fn distributions(run: &Run, latency: &str, points: &[(f64, &str)], roles: &Roles) -> Markup {
    let with_latency = run.groups.iter().filter(|group| {
        let mut subjects = group.subjects.iter();
        subjects.any(|subject| {
            points
                .iter()
                .any(|(_, name)| subject.figures.contains_key(*name))
        })
    });
    let groups: Vec<&Group> = with_latency.collect();
    if groups.is_empty() || groups.len() > DISTRIBUTIONS_MAX {
        return html! {};
    }
    let label = Metric::of(latency).label;
    let distributions: Vec<_> = groups
        .iter()
        .map(|group| distribution(run, group, points, roles))
        .collect();
    let lines = || {
        distributions
            .iter()
            .flat_map(|(own, flat)| own.iter().chain(flat))
    };
    // One scale for all, because pictures side by side are compared.
    let values: Vec<f64> = lines()
        .flat_map(|line| line.points.iter().map(|p| p.1))
        .collect();
    html! {
        figure {
            figcaption {
                strong { "Distribution: " (label) ". " }
                "Logarithmic both ways: each step to the right leaves out a tenth as many \
                 operations. The longest is that of all rounds."
            }
            (legend(lines().map(|line| (line.name.as_str(), line.role))))
            div.multiples {
                @for (group, (own, flat)) in groups.iter().zip(&distributions) {
                    @let title = words::group(group);
                    div.multiple {
                        h5 { (title) }
                        (PreEscaped(percentiles(&title, own, flat, &values)))
                    }
                }
            }
        }
    }
}

fn distribution(
    run: &Run,
    group: &Group,
    points: &[(f64, &str)],
    roles: &Roles,
) -> (Vec<Line>, Vec<Line>) {
    let own = group
        .subjects
        .iter()
        .filter(|subject| subject.valid)
        .filter_map(|subject| {
            let points: Vec<(f64, f64)> = points
                .iter()
                .filter_map(|(quantile, name)| Some((*quantile, us(name, subject.median(name)?))))
                .collect();
            (!points.is_empty()).then(|| Line {
                name: subject.name.clone(),
                role: roles.role(&subject.name),
                points,
            })
        });
    let own: Vec<Line> = own.collect();
    let median = points.iter().find(|(quantile, _)| *quantile == 0.5);
    let flat = figures_for(run, group).into_iter().filter_map(|figures| {
        let (_, name) = median?;
        Some(Line {
            points: vec![(0.5, us(name, figures.typical(name)?))],
            name: figures.subject,
            role: Role::DOCUMENT,
        })
    });
    let flat: Vec<Line> = flat.collect();
    (own, flat)
}

fn us(name: &str, value: f64) -> f64 {
    match Metric::of(name).unit {
        Unit::Milliseconds => value * 1e3,
        _ => value,
    }
}

/// Figures of cases that differ by a number: x and y. The x value may be in the case's name instead, as in `workers-2`.
const PAIRINGS: &[(&str, &str)] = &[
    (WORKERS, "handshakes_per_s"),
    (WORKERS, "messages_per_s"),
    ("clients", "max_events_per_s"),
    ("events_per_s", "latency_p50_us"),
    ("events_per_s", "latency_p99_us"),
];

/// The one series among them: points of different loads are not joined.
const WORKERS: &str = "workers";

fn pairings(run: &Run, roles: &Roles) -> Markup {
    html! {
        @for (x, y) in PAIRINGS {
            @if let Some(chart) = pairing(run, x, y, roles) { (chart) }
        }
    }
}

fn pairing(run: &Run, x: &str, y: &str, roles: &Roles) -> Option<Markup> {
    let mut found: Vec<Curve> = Vec::new();
    let mut add = |name: &str, role, point| match found.iter_mut().find(|c| c.name == name) {
        Some(curve) => curve.points.push(point),
        None => found.push(Curve {
            name: name.to_owned(),
            role,
            points: vec![point],
            joined: false,
        }),
    };
    for group in &run.groups {
        let named = group
            .case
            .strip_prefix(x)
            .and_then(|rest| rest.strip_prefix('-'));
        let named: Option<f64> = named.and_then(|number| number.parse().ok());
        for subject in group.subjects.iter().filter(|subject| subject.valid) {
            if let (Some(at), Some(value)) =
                (named.or_else(|| subject.median(x)), subject.median(y))
            {
                add(&subject.name, roles.role(&subject.name), (at, value));
            }
        }
        for figures in figures_for(run, group) {
            let at = named.or_else(|| figures.value(x));
            if let (Some(at), Some(value)) = (at, figures.typical(y)) {
                add(&figures.subject, Role::DOCUMENT, (at, value));
            }
        }
    }
    for curve in &mut found {
        curve.points.sort_by(|a, b| a.0.total_cmp(&b.0));
        curve.joined = x == WORKERS;
    }
    // Fewer points than this do not show a course.
    let is_course = found.iter().any(|curve| curve.points.len() > 2);
    is_course.then(|| paired(&found, &Metric::of(x), &Metric::of(y)))
}

fn paired(found: &[Curve], x: &Metric, y: &Metric) -> Markup {
    let values = |side: fn(&(f64, f64)) -> f64| {
        found
            .iter()
            .flat_map(move |curve| curve.points.iter().map(side))
    };
    let (x_label, y_label) = (x.title(), y.title());
    let title = format!("{} by {x_label}", sentence(&y_label));
    let chart = curves(
        &title,
        found,
        Side {
            label: &x_label,
            unit: x.unit,
            scale: scale(values(|point| point.0)),
        },
        Side {
            label: &y_label,
            unit: y.unit,
            scale: scale(values(|point| point.1)),
        },
    );
    html! {
        figure {
            figcaption { strong { (title) "." } }
            (legend(found.iter().map(|curve| (curve.name.as_str(), curve.role))))
            (PreEscaped(chart))
        }
    }
}

/// Figures that one row holds as a list, such as memory by number of sessions: a curve for each case.
fn lists(run: &Run) -> Markup {
    let subjects = || {
        let groups = run.groups.iter();
        groups.flat_map(|group| group.subjects.iter().map(move |subject| (group, subject)))
    };
    let names = each_once(subjects().flat_map(|(_, subject)| subject.lists.keys()));
    html! {
        @for name in names {
            @let items: Vec<_> = subjects()
                .filter_map(|(group, subject)| Some((group, subject, subject.lists.get(name)?)))
                .collect();
            @let fields = items.iter().flat_map(|(_, _, items)| items.iter().take(1));
            @let fields: Vec<&String> = fields.flat_map(|item| item.keys()).collect();
            @let x = fields.iter().find(|field| Metric::of(field).unit == Unit::Number);
            @let y = fields.iter().find(|field| field.starts_with("router_pss"))
                .or_else(|| fields.iter().find(|field| Metric::of(field).unit != Unit::Number));
            @if let (Some(x), Some(y)) = (x, y) {
                @let roles = Roles::of(items.iter().map(|(group, ..)| group.case.as_str()));
                @let found: Vec<Curve> = items.iter().map(|(group, _, items)| Curve {
                    name: words::group(group),
                    role: roles.role(&group.case),
                    points: items
                        .iter()
                        .filter_map(|item| Some((*item.get(*x)?, *item.get(*y)?)))
                        .collect(),
                    joined: true,
                }).collect();
                (paired(&found, &Metric::of(x), &Metric::of(y)))
            }
        }
    }
}

/// With a capital letter.
pub(super) fn sentence(label: &str) -> String {
    let mut letters = label.chars();
    match letters.next() {
        Some(first) => first.to_uppercase().chain(letters).collect(),
        None => String::new(),
    }
}
