//! The tables of `bench footprint`.

use super::{FootprintOptions, Held, Part, SESSION_BYTES};
use crate::frame::Section;
use crate::load::Spread;
use crate::report::table::{bytes, known, number, spread, table, thousands};

pub(super) const TITLE: &str = "Memory of the router by idle sessions, each joined with one \
                                subscription (each of its own topic)";

/// Memory at each number of sessions.
pub(super) fn sessions(held: &[Held]) -> String {
    let mut steps = table(&["case", "sessions", "PSS", "RSS"]);
    for held in held {
        steps.add_row([
            held.case.to_string(),
            "0".to_owned(),
            bytes(held.idle.pss as f64),
            bytes(held.idle.rss as f64),
        ]);
        for step in &held.steps {
            steps.add_row([
                String::new(),
                thousands(step.sessions as f64),
                bytes(step.router_pss_bytes as f64),
                bytes(step.router_rss_bytes as f64),
            ]);
        }
    }
    steps.trim_fmt() + "\n"
}

/// The result of each part: heads, then rows.
pub(super) fn parts(options: &FootprintOptions, sections: &[&Section<Part>]) -> Vec<Vec<String>> {
    let rows = sections.iter().filter_map(|section| {
        let own = section.own()?;
        let (what, measured) = match section.case {
            Part::Start => {
                let of = |which| own.median(which);
                let starts = of("start_ms.median").map(|median| Spread {
                    median,
                    min: of("start_ms.min").unwrap_or(median),
                    max: of("start_ms.max").unwrap_or(median),
                });
                let what = format!("start to first accept, ms, {} starts", options.starts);
                (what, spread(starts, number))
            }
            Part::Idle => {
                let threads = options.router_threads;
                let what = format!("memory at rest, PSS, {threads} router thread(s)");
                (what, known(own.median("router_pss_bytes"), bytes))
            }
            Part::Sessions(case) => {
                let what = format!("router memory per idle session, {case}");
                (what, known(own.median(SESSION_BYTES), bytes))
            }
            Part::Binary => {
                let what = "binary".to_owned();
                (what, known(own.median("binary_bytes"), bytes))
            }
        };
        Some(vec![what, measured])
    });
    let heads = vec!["footprint".to_owned(), "measured".to_owned()];
    [heads].into_iter().chain(rows).collect()
}

pub(super) fn kernel(held: &[Held]) -> Vec<String> {
    let lines = held.iter().map(|held| {
        let kernel = known(held.kernel_bytes_per_session(), bytes);
        let case = held.case;
        format!("  apart from that, kernel memory of the router's end, {case}: {kernel}")
    });
    lines.collect()
}
