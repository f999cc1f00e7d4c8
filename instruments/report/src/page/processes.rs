//! Pictures of a system's load: the usage of each process during a run's window.

use maud::{Markup, PreEscaped, html};

use super::{drawings, words};
use crate::chart::{Roles, legend_mark};
use crate::metric::{Metric, Unit, bare, number, symbol, thousands};
use crate::run::{Process, Run};

/// The columns of a process, as far as the run has them.
const COLUMNS: &[&str] = &[
    "cpu_percent",
    "pss_bytes",
    "rss_bytes",
    "threads",
    "voluntary_switches_per_s",
    "involuntary_switches_per_s",
    "pid",
];

/// A table for each case that has a picture, with all its subjects.
pub(super) fn pictures(run: &Run, roles: &Roles) -> Markup {
    html! {
        @for group in &run.groups {
            @let pictured: Vec<_> = group
                .subjects
                .iter()
                .filter(|subject| !subject.processes.is_empty())
                .collect();
            @if !pictured.is_empty() {
                div.wide {
                    table.results {
                        thead { tr {
                            th scope="col" { "System load: " (words::group(group)) }
                            @for name in COLUMNS { (heading(name)) }
                        } }
                        @for subject in pictured {
                            tbody {
                                tr.group { th colspan=(COLUMNS.len() + 1) scope="rowgroup" {
                                    (PreEscaped(legend_mark(roles.role(&subject.name))))
                                    (subject.name)
                                } }
                                @for process in &subject.processes { (row(process)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn heading(name: &str) -> Markup {
    let symbol = symbol(Metric::of(name).unit);
    html! {
        th scope="col" .number {
            (label(name))
            @if !symbol.is_empty() { br; span.unit { (symbol) } }
        }
    }
}

fn label(name: &str) -> String {
    match name {
        "pid" => "PID".to_owned(),
        _ => drawings::sentence(&Metric::of(name).label),
    }
}

fn row(process: &Process) -> Markup {
    html! {
        tr {
            th scope="row" { (process.role) }
            @for name in COLUMNS {
                td.number data-label=(label(name)) {
                    @match process.figures.get(*name) {
                        None => span.none { "–" },
                        Some(value) => {
                            (form(name, *value)) " "
                            span.symbol { (symbol(Metric::of(name).unit)) }
                        }
                    }
                }
            }
        }
    }
}

/// An id is not a quantity, and single switches are not significant.
fn form(name: &str, value: f64) -> String {
    match (name, Metric::of(name).unit) {
        ("pid", _) => format!("{value:.0}"),
        (_, Unit::PerSecond) => thousands(value),
        (_, Unit::Percent) => number(value),
        (_, unit) => bare(value, unit),
    }
}
