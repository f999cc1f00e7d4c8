//! The summary for a reader with one minute: the distance from the floor, and the goals.

use maud::{Markup, PreEscaped, html};

use super::{Part, drawings, peers, words};
use crate::chart::{Mark, Rank, Roles, Scale, ranges};
use crate::frame::{Outcome, Verdict};
use crate::instrument::headlines;
use crate::metric::{Metric, Unit, number};
use crate::run::{FLOOR, Group, Run, Spread, each_once};

/// Beyond this many cases a run is one row of the overview, over all of them.
const CASES_MAX: usize = 8;

pub(super) fn overview(parts: &[Part<'_>], roles: &Roles) -> Markup {
    let ranks = ranks(parts, roles);
    let runs: Vec<&Run> = parts.iter().flat_map(|part| &part.runs).copied().collect();
    html! {
        section #overview {
            h2 { "At a glance" }
            (peers::sentences(&runs))
            @if !ranks.is_empty() {
                (distance(&ranks))
            }
            (goals(parts))
        }
    }
}

fn distance(ranks: &[Rank]) -> Markup {
    let chart = ranges(
        "Cost beside the floor",
        "times the floor's cost",
        ranks,
        Unit::Number,
        Scale::Logarithmic,
        Some(1.0),
    );
    let marks = ranks.iter().flat_map(|rank| &rank.marks);
    html! {
        figure {
            figcaption {
                strong { "Cost beside the floor. " }
                "Time or processor time of an operation as a multiple of the floor's in the same \
                 round; of a rate, the floor's over the subject's. The line at 1 is the floor: \
                 left of it a subject is better than the smallest program that does the work in \
                 the plain way. Marks are medians, thin lines reach from the best to the worst \
                 round."
            }
            (drawings::legend(marks.map(|mark| (mark.name.as_str(), mark.role))))
            (PreEscaped(chart))
        }
    }
}

fn ranks(parts: &[Part<'_>], roles: &Roles) -> Vec<Rank> {
    let mut ranks = Vec::new();
    for part in parts {
        let mut rows = Vec::new();
        for run in &part.runs {
            rows.extend(run_ranks(run, roles));
        }
        if !rows.is_empty() {
            ranks.push(Rank::heading(&part.title));
            ranks.extend(rows);
        }
    }
    ranks
}

fn run_ranks(run: &Run, roles: &Roles) -> Vec<Rank> {
    let headlines = headlines(run);
    let mut what = match run.setting("outstanding") {
        Some(outstanding) if outstanding > 1.0 => format!(", {outstanding} in flight"),
        _ => String::new(),
    };
    if run.is_set("spin") {
        what += ", busy-polling";
    }
    if let Some(work) = run.settings.get("work").and_then(|work| work.as_str()) {
        what = format!(", {work}{what}");
    }
    let ranked = run.groups.iter().map(|group| {
        // The first figure that the case has: a throughput has no transactions.
        let marks = headlines.iter().map(|headline| costs(group, headline));
        let marks = marks.into_iter().find(|marks| !marks.is_empty());
        (words::group(group) + &what, marks.unwrap_or_default())
    });
    let ranked: Vec<_> = ranked.filter(|(_, marks)| !marks.is_empty()).collect();
    let mark = |(name, spread): (String, Spread)| Mark {
        role: roles.role(&name),
        name,
        spread,
    };
    if ranked.len() <= CASES_MAX {
        let ranks = ranked.into_iter().map(|(label, marks)| Rank {
            label,
            marks: marks.into_iter().map(mark).collect(),
        });
        return ranks.collect();
    }
    let label = match headlines.first() {
        Some(headline) => format!("{} cases, {}", ranked.len(), Metric::of(headline).label),
        None => format!("{} cases", ranked.len()),
    };
    let names = ranked.iter().flat_map(|(_, marks)| marks);
    let names = each_once(names.map(|(name, _)| name.clone()));
    let over_all = names.into_iter().filter_map(|name| {
        let medians = ranked.iter().flat_map(|(_, marks)| marks);
        let medians = medians.filter(|(other, _)| *other == name);
        let spread = Spread::of(medians.map(|(_, spread)| spread.median))?;
        Some(mark((name, spread)))
    });
    vec![Rank {
        label,
        marks: over_all.collect(),
    }]
}

/// Every subject's cost over the floor's; more is worse, for any figure.
fn costs(group: &Group, headline: &str) -> Vec<(String, Spread)> {
    let less_is_better = Metric::of(headline).less_is_better();
    let Some(floor) = group.floor() else {
        return Vec::new();
    };
    let others = group.subjects.iter().filter(|s| s.name != FLOOR && s.valid);
    let costs = others.filter_map(|subject| {
        let ratio = match less_is_better {
            true => subject.over(floor, headline)?,
            false => floor.over(subject, headline)?,
        };
        Some((subject.name.clone(), ratio))
    });
    costs.collect()
}

fn goals(parts: &[Part<'_>]) -> Markup {
    let all = || {
        parts
            .iter()
            .flat_map(|part| &part.runs)
            .flat_map(|run| &run.verdicts)
    };
    let of = |outcome| all().filter(|one| one.verdict == outcome).count();
    let (met, counted) = (of(Outcome::Met), of(Outcome::Met) + of(Outcome::Missed));
    html! {
        @if all().next().is_some() {
            h3 { "Goals" }
            p {
                @if counted > 0 { strong { (met) " of " (counted) } " goals are met. " }
                @else { strong { "No goal is judged. " } }
                "Goals were set before anything was built; a missed one stays in the list. "
                @if counted < all().count() {
                    (all().count() - counted) " are not judged, because the figure does not count \
                    or something else was busy on the machine."
                }
            }
            table.goals {
                thead { tr {
                    th scope="col" { "Figure" }
                    th scope="col" { "Case" }
                    th scope="col" .number { "Goal" }
                    th scope="col" .number { "Reached" }
                    th scope="col" { "" }
                } }
                @for part in parts {
                        @for run in &part.runs {
                            @if !run.verdicts.is_empty() {
                                tbody {
                                    tr.group { th colspan="5" scope="rowgroup" {
                                        a href={ "#" (part.bench) } { (part.title) }
                                        @if part.runs.len() > 1 { ", " (words::run(run)) }
                                        br; span.load { (words::load(run)) }
                                    } }
                                    @for verdict in &run.verdicts { (goal(verdict)) }
                                }
                            }
                        }
                }
            }
        }
    }
}

fn goal(verdict: &Verdict) -> Markup {
    let (class, sign, word) = match verdict.verdict {
        Outcome::NotJudged => ("uncounted", "–", "not judged"),
        Outcome::Met => ("met", "✓", "met"),
        Outcome::Missed => ("missed", "✗", "missed"),
    };
    let why = Some(&verdict.why).filter(|why| !why.is_empty());
    html! {
        tr class=(class) {
            th scope="row" { (verdict.what) }
            td data-label="Case" { (words::placed(&verdict.case, verdict.placement.as_deref())) }
            td.number data-label="Goal" { (bound(verdict)) }
            td.number data-label="Reached" { (verdict.reached.map_or_else(|| "–".to_owned(), number)) }
            td.verdict title=[why] {
                span aria-hidden="true" { (sign) } " " (word)
            }
        }
    }
}

fn bound(verdict: &Verdict) -> String {
    match (verdict.at_most, verdict.at_least) {
        (Some(bound), _) => format!("≤ {}", number(bound)),
        (None, Some(bound)) => format!("≥ {}", number(bound)),
        (None, None) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::frame::Frame;

    #[test]
    fn verdicts_are_drawn() {
        let verdict = |what: &str, verdict: &str, why: &str| {
            json!({
                "case": "uds-rawsocket-msgpack", "placement": "split", "what": what,
                "at_most": 1.1, "reached": 1.05, "verdict": verdict, "why": why
            })
        };
        let frame = |verdicts: serde_json::Value| {
            json!({
                "bench": "rpc", "version": "", "commit": "",
                "machine": { "cpu": "", "cores": 1, "memory_bytes": 0, "os": "", "kernel": "" },
                "results": [], "verdicts": verdicts,
            })
        };
        let page = |verdicts: serde_json::Value| {
            let run = Run::new("f", Frame::read(&frame(verdicts).to_string()).unwrap());
            let part = Part {
                bench: "rpc",
                title: "Calls".to_owned(),
                runs: vec![&run],
            };
            goals(&[part]).into_string()
        };
        let why = "something else was busy here";
        let drawn = page(json!([
            verdict("a", "met", ""),
            verdict("b", "not judged", why)
        ]));
        for text in ["1 of 1", "≤ 1.10", "1.05", "✓", why, "1 are not judged"] {
            assert!(drawn.contains(text), "{text}: {drawn}");
        }
        // Files from before verdicts were stored have no goals.
        assert_eq!(page(json!([])), "");
    }
}
