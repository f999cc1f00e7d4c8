//! Figures as tables: a row for each subject, medians with the smallest and the largest round below them.

mod compact;

use maud::{Markup, PreEscaped, html};

use super::{drawings, words};
use crate::chart::{Role, Roles, legend_mark};
use crate::document::{document, figures_for};
use crate::instrument::headlines;
use crate::metric::{Metric, Unit, bare, number, symbol, with_unit};
use crate::run::{FLOOR, Group, OWN, Run, Spread, Subject};

/// Beyond this many cases a line for each comes first.
const GROUPS_MAX: usize = 8;

/// Headlines that get a column for their ratio to the floor.
const RATIOS_MAX: usize = 2;

/// One column: a figure, or a figure over the floor's.
#[derive(Clone, Debug)]
struct Column<'a> {
    name: &'a str,
    metric: Metric,
    over_floor: bool,
}

impl Column<'_> {
    fn label(&self) -> String {
        let label = drawings::sentence(&self.metric.label);
        match self.over_floor {
            true => format!("{label} ÷ floor"),
            false => label,
        }
    }
}

/// The table of a run.
pub(super) fn results(run: &Run, chosen: &[&str], roles: &Roles) -> Markup {
    let alone = run.groups.iter().all(|group| group.subjects.len() == 1);
    if alone && document(&run.bench).is_none() {
        return list(run, chosen);
    }
    let many = run.groups.len() > GROUPS_MAX;
    if many
        || run
            .settings
            .get("work")
            .is_some_and(|work| work == "profiles")
    {
        return html! {
            (compact::compact(run))
            details {
                summary { "All figures of each case" }
                (full(run, chosen, roles))
            }
        };
    }
    full(run, chosen, roles)
}

/// Cases with different figures, such as a rate and a throughput, have tables of their own.
fn full(run: &Run, chosen: &[&str], roles: &Roles) -> Markup {
    let mut tables: Vec<(Vec<&str>, Vec<&Group>)> = Vec::new();
    for group in &run.groups {
        let has = |name: &&&str| {
            group
                .subjects
                .iter()
                .any(|s| s.figures.contains_key(**name))
        };
        let present: Vec<&str> = chosen.iter().filter(has).copied().collect();
        let known = tables.iter_mut().find(|(names, _)| {
            present.is_empty() || present.iter().any(|name| names.contains(name))
        });
        match known {
            Some((names, groups)) => {
                names.extend(
                    present
                        .iter()
                        .filter(|name| !names.contains(name))
                        .copied()
                        .collect::<Vec<_>>(),
                );
                groups.push(group);
            }
            None => tables.push((present, vec![group])),
        }
    }
    html! {
        @for (names, groups) in &tables {
            @let names: Vec<&str> = chosen.iter().filter(|c| names.contains(c)).copied().collect();
            @let columns = columns(run, &names);
            div.wide {
                table.results {
                    (head(&columns))
                    @for group in groups { (body(run, group, &columns, roles)) }
                }
            }
        }
    }
}

/// Everything that is in no other table, without comparisons.
pub(super) fn plain(run: &Run, names: &[&str]) -> Markup {
    list(run, names)
}

fn columns<'a>(run: &Run, chosen: &[&'a str]) -> Vec<Column<'a>> {
    let has_floor = run.groups.iter().any(|group| group.floor().is_some());
    let compared: Vec<&str> = headlines(run).into_iter().take(RATIOS_MAX).collect();
    let columns = chosen.iter().flat_map(|name| {
        let column = |over_floor| Column {
            name,
            metric: Metric::of(name),
            over_floor,
        };
        let ratio = has_floor && compared.contains(name);
        [Some(column(false)), ratio.then(|| column(true))]
    });
    columns.flatten().collect()
}

fn head(columns: &[Column<'_>]) -> Markup {
    html! {
        thead { tr {
            th scope="col" { "" }
            @for column in columns {
                @if column.over_floor {
                    th scope="col" .number { "÷ floor" }
                } @else {
                    th scope="col" .number {
                        (drawings::sentence(&column.metric.label))
                        @let symbol = symbol(column.metric.unit);
                        @if !symbol.is_empty() { br; span.unit { (symbol) } }
                    }
                }
            }
        } }
    }
}

fn body(run: &Run, group: &Group, columns: &[Column<'_>], roles: &Roles) -> Markup {
    let width = columns.len() + 1;
    let documents = figures_for(run, group);
    html! {
        tbody {
            tr.group { th colspan=(width) scope="rowgroup" { (words::group(group)) } }
            @for subject in &group.subjects {
                tr .own[subject.name == OWN] .invalid[!subject.valid] {
                    th scope="row" {
                        (PreEscaped(legend_mark(roles.role(&subject.name)))) (subject.name)
                        @if !subject.words.is_empty() {
                            span.remark { (remarks(subject)) }
                        }
                    }
                    @for column in columns { (cell(group, subject, column)) }
                }
                @if !subject.valid {
                    tr.why { td colspan=(width) {
                        strong { "✗ " (subject.name) " is not counted: " } (reason(subject))
                    } }
                }
            }
            @for figures in &documents {
                tr.document {
                    th scope="row" { (PreEscaped(legend_mark(Role::DOCUMENT))) (figures.subject) }
                    @for column in columns {
                        (documented(group, column, figures.value(column.name)))
                    }
                }
            }
            @if documents.is_empty() && document(&run.bench).is_some() {
                tr.document {
                    th scope="row" { (PreEscaped(legend_mark(Role::DOCUMENT))) "document" }
                    td colspan=(columns.len()) { "not given" }
                }
            }
        }
    }
}

fn cell(group: &Group, subject: &Subject, column: &Column<'_>) -> Markup {
    if column.over_floor {
        let floor = group.floor().filter(|_| subject.name != FLOOR);
        let ratio = floor.and_then(|floor| subject.over(floor, column.name));
        return figure(&column.label(), ratio, number, "");
    }
    let spread = subject.figures.get(column.name).copied();
    let unit = column.metric.unit;
    figure(
        &column.label(),
        spread,
        |value| bare(value, unit),
        symbol(unit),
    )
}

/// A document's figure, or in the column of ratios its multiple of ours.
fn documented(group: &Group, column: &Column<'_>, value: Option<f64>) -> Markup {
    if !column.over_floor {
        return html! {
            td.number data-label=(column.label()) {
                @if let Some(value) = value {
                    (bare(value, column.metric.unit)) " "
                    span.symbol { (symbol(column.metric.unit)) }
                }
            }
        };
    }
    let own = group.subject(OWN).and_then(|own| own.median(column.name));
    let times = match (value, own) {
        (Some(value), Some(own)) => Some(value / own),
        _ => None,
    };
    html! {
        td.number data-label=(column.label()) {
            @if let Some(times) = times.filter(|times| times.is_finite()) {
                (number(times)) " × ours"
            }
        }
    }
}

/// One cell. Without room for a table it is alone, with its label and its unit.
fn figure(
    label: &str,
    spread: Option<Spread>,
    form: impl Fn(f64) -> String,
    symbol: &str,
) -> Markup {
    html! {
        td.number data-label=(label) {
            @match spread {
                None => span.none { "–" },
                Some(Spread { median, min, max }) => {
                    (form(median)) " " span.symbol { (symbol) }
                    @let (least, most) = (form(min), form(max));
                    @if least != most { br; span.range { (least) "–" (most) } }
                }
            }
        }
    }
}

fn remarks(subject: &Subject) -> String {
    let words = subject.words.iter();
    let words = words.map(|(name, word)| match word.as_str() {
        "" => name.replace('_', "-"),
        word => format!("{}: {word}", name.replace('_', " ")),
    });
    words.collect::<Vec<_>>().join(" · ")
}

fn reason(subject: &Subject) -> &str {
    match subject.why.as_str() {
        "" => "the run does not say why",
        why => why,
    }
}

/// A line for each figure: if subjects are not compared, or the figures differ by case.
fn list(run: &Run, names: &[&str]) -> Markup {
    let several = run.groups.iter().any(|group| group.subjects.len() > 1);
    html! {
        div.wide {
            table.list {
                thead { tr {
                    th scope="col" { "Case" }
                    @if several { th scope="col" { "Subject" } }
                    th scope="col" { "Figure" }
                    th scope="col" .number { "Median" }
                    th scope="col" .number { "Smallest–largest" }
                } }
                @for group in &run.groups {
                    @for subject in &group.subjects {
                        (lines(group, subject, names, several))
                    }
                }
            }
        }
    }
}

fn lines(group: &Group, subject: &Subject, names: &[&str], several: bool) -> Markup {
    let figures = names
        .iter()
        .filter_map(|name| Some((*name, *subject.figures.get(*name)?)));
    let figures: Vec<(&str, Spread)> = figures.collect();
    html! {
        @if !figures.is_empty() {
            tbody .invalid[!subject.valid] {
                @for (at, (name, spread)) in figures.iter().enumerate() {
                    @let metric = Metric::of(name);
                    @let form = |value: f64| in_list(value, metric.unit);
                    tr {
                        th scope="row" { @if at == 0 { (words::group(group)) } }
                        @if several {
                            td data-label="Subject" { @if at == 0 { (subject.name) } }
                        }
                        td.figure { (metric.label) }
                        td.number data-label="Median" { (form(spread.median)) }
                        td.number data-label="Smallest–largest" {
                            @let (least, most) = (form(spread.min), form(spread.max));
                            @if least != most { span.range { (least) "–" (most) } }
                        }
                    }
                }
                @if !subject.valid {
                    tr.why { td colspan=(4 + usize::from(several)) {
                        strong { "✗ not counted: " } (reason(subject))
                    } }
                }
            }
        }
    }
}

fn in_list(value: f64, unit: Unit) -> String {
    with_unit(value, unit)
}
