//! The lines of `bench oslo` around its tables; for the delays the document, the peer, this broker and the limit side
//! by side, with the reasons.

use crosstie_wan::units;

use super::case::Placed;
use super::document;
use super::goals::without_goal;
use super::topology::Topology;
use super::{RATE, WITH_SETUP};
use crate::figures::Series;
use crate::frame::Section;
use crate::report::table::{UNKNOWN, known, number};

/// All delays of a case: heads, then rows.
pub(super) fn delays(sections: &[&Section<Placed>]) -> Vec<Vec<String>> {
    let series = sections.first().map_or(&[][..], |first| &first.series);
    // The peer first, as it is between the document and this broker.
    let order = || series.iter().rev().map(|series| &series.subject);
    let mut heads = vec![
        "topology".to_owned(),
        "delay".to_owned(),
        "document".to_owned(),
    ];
    heads.extend(order().map(|name| format!("{name}, its clock")));
    heads.extend(order().map(|name| format!("{name}, honest")));
    heads.push("limit".to_owned());
    heads.extend(order().map(|name| format!("{name} ÷ limit")));
    let rows = sections.iter().filter_map(|section| delay(section));
    [heads].into_iter().chain(rows).collect()
}

fn delay(section: &Section<Placed>) -> Option<Vec<String>> {
    let case = &section.case;
    let (topology, delay) = case.way?;
    let document = case.document().map_or_else(
        || "not given".to_owned(),
        |figure| {
            let (one, eight) = (number(figure.one_core), number(figure.eight_cores));
            format!("{one} / {eight}")
        },
    );
    let mut cells = vec![topology.to_string(), units::written(delay), document];
    let ordered = || section.series.iter().rev();
    cells.extend(ordered().map(|series| least_and_median(series, WITH_SETUP)));
    cells.extend(ordered().map(|series| least_and_median(series, RATE)));
    let limit = case.limit_per_s();
    cells.push(limit.map_or_else(|| "none".to_owned(), number));
    let ratio = |value: f64| format!("{value:.3}");
    cells.extend(ordered().map(|series| known(case.over_limit(series), ratio)));
    Some(cells)
}

fn least_and_median(series: &Series, name: &str) -> String {
    let spread = series.spread(name);
    spread.map_or_else(
        || UNKNOWN.to_owned(),
        |spread| format!("{} / {}", number(spread.min), number(spread.median)),
    )
}

pub(super) fn below(sections: &[&Section<Placed>]) -> Vec<String> {
    let mut lines = Vec::new();
    let delayed = sections.iter().find(|section| section.case.way.is_some());
    if let Some(first) = delayed {
        lines.push(format!(
            "  minimum / median. Its clock: the document's, from before the client connects; honest: \
             connecting apart.\n  document: {}; the least of five runs by its clock.\n  limit: one \
             round trip for each operation that has to wait for it, and nothing else.",
            document::HARDWARE
        ));
        let operation = first.case.of.operation;
        for topology in Topology::ALL {
            let is_of = |way: (Topology, _)| way.0 == topology;
            if sections
                .iter()
                .any(|section| section.case.way.is_some_and(is_of))
            {
                let why = topology.explanation(operation);
                lines.push(format!("  {operation}, {topology}: {why}."));
            }
        }
    }
    for section in sections {
        lines.extend(section.crowd().filter(|_| delayed.is_none()));
        lines.extend(without_goal(section));
    }
    lines
}
