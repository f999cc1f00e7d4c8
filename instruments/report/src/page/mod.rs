//! The page itself: everything in one file, no script, readable without colours and on paper.

mod drawings;
mod method;
mod overview;
mod peers;
mod processes;
mod provenance;
mod section;
mod table;
mod words;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::Damage;
use crate::chart::Roles;
use crate::instrument::{instrument, position};
use crate::run::{Run, Superseded};

const STYLE: &str = include_str!("style.css");

/// All runs of one bench, the newest first.
struct Part<'a> {
    bench: &'a str,
    title: String,
    runs: Vec<&'a Run>,
}

/// The whole page.
pub(crate) fn render(runs: &[Run], superseded: &[Superseded], damaged: &[Damage]) -> String {
    let parts = parts(runs);
    let groups = runs.iter().flat_map(|run| &run.groups);
    let subjects = groups.flat_map(|group| &group.subjects);
    let roles = Roles::of(subjects.map(|subject| subject.name.as_str()));
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { "Crosstie, measured" }
                // An icon of its own keeps browsers from requesting one.
                link rel="icon" href="data:,";
                style { (PreEscaped(STYLE)) }
            }
            body {
                (header(runs))
                (damages(damaged))
                (contents(&parts))
                main {
                    (overview::overview(&parts, &roles))
                    @for part in &parts { (section::section(part, &roles)) }
                    (method::method(runs))
                    (provenance::provenance(runs, superseded, damaged))
                }
            }
        }
    };
    page.into_string()
}

fn parts(runs: &[Run]) -> Vec<Part<'_>> {
    let mut parts: Vec<Part<'_>> = Vec::new();
    let mut ordered: Vec<&Run> = runs.iter().collect();
    ordered.sort_by_key(|run| position(run));
    for run in ordered {
        match parts.iter_mut().find(|part| part.bench == run.bench) {
            Some(part) => part.runs.push(run),
            None => parts.push(Part {
                bench: &run.bench,
                title: instrument(run)
                    .map_or(run.bench.as_str(), |known| known.title)
                    .to_owned(),
                runs: vec![run],
            }),
        }
    }
    // By file: `rpc` comes before `rpc-in-flight`, whichever was measured last.
    for part in &mut parts {
        part.runs.sort_by_key(|run| words::stem(&run.file));
    }
    parts
}

fn header(runs: &[Run]) -> Markup {
    let mut builds: Vec<String> = runs.iter().map(words::build).collect();
    builds.sort();
    builds.dedup();
    html! {
        header {
            h1 { "Crosstie, measured" }
            p.lead {
                "A message router beside the smallest program that does the same work on the same \
                 machine, beside its peers, and beside the figures that others have published."
            }
            dl.facts {
                div { dt { "Measured" } dd { (words::days(runs)) } }
                div { dt { "Build" } dd { (builds.join("; ")) } }
                @for machine in method::machines(runs) {
                    div { dt { "Machine" } dd { (words::machine(machine)) } }
                }
            }
        }
    }
}

fn damages(damaged: &[Damage]) -> Markup {
    html! {
        @if !damaged.is_empty() {
            div.damage role="note" {
                strong { "Not on this page: " }
                @for damage in damaged {
                    span { code { (damage.file) } " (" (damage.why) ") " }
                }
            }
        }
    }
}

fn contents(parts: &[Part<'_>]) -> Markup {
    html! {
        nav aria-label="Contents" {
            a href="#overview" { "At a glance" }
            @for part in parts { a href={ "#" (part.bench) } { (part.title) } }
            a href="#method" { "Method" }
            a href="#files" { "Files" }
        }
    }
}
