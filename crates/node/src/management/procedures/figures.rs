//! Procedures that read counters and histograms of all routers.

use std::time::{Duration, SystemTime};

use crosstie_config::Json;
use crosstie_router::{Histogram, ListenerCertificate, Router, Series};
use serde_json::json;

use super::{Procedure, date, now};
use crate::management::errors;
use crate::management::request::{Answer, Call};
use crate::node::Node;

pub(super) static PROCEDURES: [Procedure; 3] = [
    now("crossbar.get_figures", figures),
    now("crossbar.get_histograms", histograms),
    now("crossbar.get_certificates", certificates),
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
        "amqp": figures.amqp,
        "actions_refused": figures.actions_refused,
        "authentications_refused": figures.authentications_refused,
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

/// Maximum number of certificates in one answer.
const CERTIFICATES_MAX: usize = 100;

/// The files of listeners that end, those that end first in front.
fn certificates(node: &mut Node, call: &Call) -> Answer {
    let offset: Option<usize> = call.optional(0, "offset")?;
    let limit: Option<usize> = call.optional(1, "limit")?;
    let own = node.management.as_ref().map(|realm| &realm.router);
    let routers = node.routers().into_iter().chain(own);
    let files = routers.flat_map(|router: &Router| {
        let files = router.listener_certificates().into_iter();
        files.map(|file| (router.id(), file))
    });
    let mut files: Vec<(&str, ListenerCertificate)> = files.collect();
    files.sort_by(|(_, a), (_, b)| {
        let key = |file: &ListenerCertificate| file.ends.at_s.unwrap_or(i64::MAX);
        key(a)
            .cmp(&key(b))
            .then_with(|| a.transport.cmp(&b.transport))
    });
    let limit = limit.unwrap_or(CERTIFICATES_MAX).min(CERTIFICATES_MAX);
    let part = files.iter().skip(offset.unwrap_or(0)).take(limit);
    Ok(part
        .map(|(worker, file)| about_certificate(worker, file))
        .collect())
}

const DAY_S: i64 = 24 * 60 * 60;

fn about_certificate(worker: &str, file: &ListenerCertificate) -> Json {
    let ends = &file.ends;
    let now_s = (now_ms() / 1000).cast_signed();
    let expires = ends.at_s.and_then(|at_s| {
        let after = Duration::from_secs(u64::try_from(at_s).ok()?);
        Some(date(SystemTime::UNIX_EPOCH.checked_add(after)?))
    });
    json!({
        "worker": worker,
        "transport": file.transport,
        "kind": ends.file.to_string(),
        "names": ends.names,
        "file": ends.path.display().to_string(),
        "expires": expires,
        "days_left": ends.at_s.map(|at_s| (at_s - now_s).div_euclid(DAY_S)),
        "refused": file.refused,
    })
}
