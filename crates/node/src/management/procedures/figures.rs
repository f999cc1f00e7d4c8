//! Procedures that read counters and histograms of all routers.

use std::time::SystemTime;

use crosstie_config::Json;
use crosstie_router::{Histogram, Series};
use serde_json::json;

use super::{Procedure, date, now};
use crate::management::errors;
use crate::management::request::{Answer, Call};
use crate::node::Node;

pub(super) static PROCEDURES: [Procedure; 2] = [
    now("crossbar.get_figures", figures),
    now("crossbar.get_histograms", histograms),
];

/// What changes from second to second, of all routers, in one answer.
fn figures(node: &mut Node, _: &Call) -> Answer {
    let figures = crosstie_router::figures(&node.routers());
    Ok(json!({
        "at_ms": now_ms(),
        "started": date(node.since),
        "ready": figures.is_ready,
        "health": figures.health,
        "connections": figures.connections,
        "sessions": figures.sessions,
        "subscriptions": figures.subscriptions,
        "registrations": figures.registrations,
        "calls": figures.calls,
        "received": figures.received,
        "sent": figures.sent,
        "counters": figures.counters,
        "session_ends": figures.session_ends,
        "held_bytes": figures.held_bytes,
        "held_bytes_max": figures.held_bytes_max,
    }))
}

fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    now.map_or(0, |now| u64::try_from(now.as_millis()).unwrap_or(u64::MAX))
}

/// Maximum number of a histogram's series in one answer.
const SERIES_MAX: usize = 100;

/// Each histogram of all labels together, or some series of one.
fn histograms(node: &mut Node, call: &Call) -> Answer {
    let name: Option<String> = call.optional(0, "name")?;
    let offset: Option<usize> = call.optional(1, "offset")?;
    let limit: Option<usize> = call.optional(2, "limit")?;
    let mut all = crosstie_router::histograms(&node.routers());
    let Some(name) = name else {
        let about = |series: &Series| {
            let mut row = json!({"name": series.name, "unit": series.unit.symbol()});
            describe(&mut row, &series.sum());
            row
        };
        return Ok(all.iter().map(about).collect());
    };
    let Some(series) = all.iter_mut().find(|series| series.name == name) else {
        let names: Vec<&str> = all.iter().map(|series| series.name).collect();
        let names = names.join(", ");
        let text = format!("argument 0, 'name': expected one of {names}; got '{name}'");
        return Err(errors::invalid_argument(&text));
    };
    series.sort();
    let limit = limit.unwrap_or(SERIES_MAX).min(SERIES_MAX);
    let part = series
        .by_labels
        .iter()
        .skip(offset.unwrap_or(0))
        .take(limit);
    let about = part.map(|(labels, values)| {
        let labels = labels.iter();
        let labels = labels.map(|(name, value)| (*name, value.as_str()));
        let mut row: Json = labels.collect();
        describe(&mut row, values);
        row
    });
    Ok(about.collect())
}

/// Adds the values. The last classes are absent if they have none.
fn describe(row: &mut Json, values: &Histogram) {
    let classes = values.classes();
    let last = classes.iter().rposition(|count| *count > 0);
    row["count"] = values.count().into();
    row["sum"] = values.sum().into();
    row["classes"] = classes[..last.map_or(0, |last| last + 1)].into();
}
