//! Many cases, a line for each: the document's figure, all subjects' headlines, the ratio.

use maud::{Markup, html};

use super::{RATIOS_MAX, figure, words};
use crate::document::{document, figures_for};
use crate::instrument::headlines;
use crate::metric::{Metric, bare, number, symbol, with_unit};
use crate::page::drawings::sentence;
use crate::run::{Group, OWN, Run, each_once};

pub(super) fn compact(run: &Run) -> Markup {
    let headlines: Vec<&str> = headlines(run).into_iter().take(RATIOS_MAX).collect();
    let subjects = subjects(run);
    let documented = document(&run.bench).is_some();
    let has_floor = run.groups.iter().any(|group| group.floor().is_some());
    let width = subjects.len() + usize::from(has_floor);
    html! {
        div.wide {
            table.compact {
                thead {
                    tr {
                        th rowspan="2" scope="col" { "Case" }
                        @if documented { th rowspan="2" scope="col" .number { "Document" } }
                        @for name in &headlines {
                            @let metric = Metric::of(name);
                            th colspan=(width) scope="colgroup" .number {
                                (sentence(&metric.label)) " "
                                span.unit { (symbol(metric.unit)) }
                            }
                        }
                    }
                    tr {
                        @for _ in &headlines {
                            @for subject in &subjects { th scope="col" .number { (subject) } }
                            @if has_floor { th scope="col" .number { "÷ floor" } }
                        }
                    }
                }
                tbody.lines {
                    @for group in &run.groups {
                        tr .invalid[!valid(group)] {
                            th scope="row" { (words::group(group)) }
                            @if documented {
                                td.number data-label="Document" { (given(run, group)) }
                            }
                            @for name in &headlines { (cells(group, name, &subjects, has_floor)) }
                        }
                    }
                }
            }
        }
    }
}

/// In the order of the first case; ours first in each.
fn subjects(run: &Run) -> Vec<&str> {
    let subjects = run.groups.iter().flat_map(|group| &group.subjects);
    each_once(subjects.map(|subject| subject.name.as_str()))
}

fn valid(group: &Group) -> bool {
    group.subject(OWN).is_none_or(|own| own.valid)
}

/// The document's own figure, beside its given rate.
fn given(run: &Run, group: &Group) -> Markup {
    let figures = figures_for(run, group);
    let figures = figures.iter().flat_map(|figures| &figures.figures);
    // A rate is given; a figure beside it is the document's result.
    let found: Vec<_> = figures
        .filter(|(name, _)| !name.ends_with("_per_s"))
        .collect();
    html! {
        @if found.is_empty() { span.none { "not given" } }
        @for (name, value) in found {
            @let metric = Metric::of(name);
            (with_unit(*value, metric.unit)) br; span.range { (metric.label) }
        }
    }
}

fn cells(group: &Group, name: &str, subjects: &[&str], has_floor: bool) -> Markup {
    let metric = Metric::of(name);
    let unit = metric.unit;
    let label = sentence(&metric.label);
    let own = group.subject(OWN);
    let ratio = own
        .zip(group.floor())
        .and_then(|(own, floor)| own.over(floor, name));
    html! {
        @for subject in subjects {
            @let found = group.subject(subject).and_then(|s| s.median(name));
            td.number data-label={ (label) ", " (subject) } {
                @match found {
                    Some(value) => { (bare(value, unit)) " " span.symbol { (symbol(unit)) } }
                    None => span.none { "–" },
                }
            }
        }
        @if has_floor { (figure(&format!("{label} ÷ floor"), ratio, number, "")) }
    }
}
