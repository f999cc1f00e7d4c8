//! One bench: its options, the document's figures, its results.

use maud::{Markup, html};

use super::{Part, drawings, processes, table, words};
use crate::chart::Roles;
use crate::document::document;
use crate::instrument::{columns, instrument};
use crate::run::Run;

pub(super) fn section(part: &Part<'_>, roles: &Roles) -> Markup {
    let about = part.runs.first().and_then(|run| instrument(run));
    html! {
        section #(part.bench) .part {
            h2 { (part.title) }
            @if let Some(known) = about { p.about { (known.about) } }
            @if let Some(document) = document(part.bench) {
                aside {
                    p {
                        strong { "Source document: " } em { (document.title) } ". "
                        (document.system) ", on " (document.hardware) ". " (document.note)
                        " A ratio to figures of another machine is a courtesy; the floor and the \
                          peers beside it are the proof."
                    }
                }
            }
            @for one in &part.runs { (run(one, part.runs.len() > 1, roles)) }
        }
    }
}

fn run(run: &Run, titled: bool, roles: &Roles) -> Markup {
    let (chosen, rest) = columns(run);
    html! {
        article {
            @if titled { h3 { (words::title(run)) } }
            p.meta {
                code { "crosstie bench " (run.bench) } " · " (words::time(run.machine.unix_time_s))
                " · " (words::build(run)) " · " (words::load(run))
                @let settings = words::settings(run);
                @if !settings.is_empty() { br; (settings) }
                @for peer in words::peers(run) { br; (peer) }
            }
            @if run.groups.is_empty() {
                p.uncounted { "This run ended before it had any result." }
            }
            (drawings::drawings(run, roles))
            (table::results(run, &chosen, roles))
            (processes::pictures(run, roles))
            @if !rest.is_empty() {
                details.rest {
                    summary { "Everything else that was recorded" }
                    (table::plain(run, &rest))
                }
            }
        }
    }
}
