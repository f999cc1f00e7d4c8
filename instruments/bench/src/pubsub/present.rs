//! The lines of `bench pubsub` around its tables, and the table of the document's results.

use super::competitor::{MAX_EVENTS_PER_S, Workload};
use super::drivers::Rate;
use super::options::{PubSubOptions, Work};
use super::profiles::HARDWARE;
use super::round::{EVENTS_PER_S, FOREIGN_BUSY, P50, P99};
use crate::figures::Series;
use crate::frame::{FLOOR, Section};
use crate::report::table::{UNKNOWN, bytes, known, number, thousands};

pub(super) fn header(options: &PubSubOptions) -> Vec<String> {
    let latency = match options.work {
        Work::Saturate { .. } => "a latency is the publisher's own, from its write",
        _ => "a latency lasts from the instant at which its batch should have been published",
    };
    let (router, runs) = (options.routers.describe(false), options.common.runs);
    vec![format!(
        "Router: {router}; {latency} to the read that brought the event; {runs} round{}, medians",
        if runs == 1 { "" } else { "s" },
    )]
}

/// Results of the document in one case and placement share a table.
pub(super) fn title(options: &PubSubOptions, section: &Section<Workload>) -> String {
    let workload = &section.case;
    let placement = section.placement.map(|placement| placement.to_string());
    let place = format!("{} {}", workload.case, placement.unwrap_or_default());
    if workload.profile.is_some() {
        return format!("{place}; document: {HARDWARE}");
    }
    let load = match workload.load.rate {
        Rate::Hz(_) if matches!(options.work, Work::Max { .. }) => {
            format!("batches of {} as often as holds", workload.load.batch)
        }
        Rate::Hz(hz) => format!("a batch of {} at {hz} Hz", workload.load.batch),
        Rate::Saturated { outstanding } => format!("{outstanding} publications under way"),
    };
    format!(
        "{place}: {} clients, {load}, {}+ bytes payload, {} s",
        workload.clients, workload.payload_bytes, workload.load.seconds
    )
}

pub(super) fn below(sections: &[&Section<Workload>]) -> Vec<String> {
    let mut lines = Vec::new();
    for section in sections {
        match section.case.profile {
            None => {
                let found = section.series.iter();
                let found = found.filter(|series| series.median(EVENTS_PER_S).is_some());
                lines.extend(found.map(drivers));
                let own = section.own();
                let ratio = own.and_then(|own| section.over(own, FLOOR, MAX_EVENTS_PER_S));
                let ratio = ratio.map(|ratio| number(ratio.median));
                lines.extend(ratio.map(|ratio| format!("  highest rate ÷ floor's: {ratio}")));
            }
            Some(profile) if !profile.adds_up() => lines.push(format!(
                "  result {}: its heading has {} events/s, but clients × batch × rate is {}",
                profile.result,
                thousands(profile.heading_events_per_s),
                thousands(profile.events_per_s()),
            )),
            Some(_) => {}
        }
    }
    lines
}

/// The drivers' cost and punctuality: without them a figure of the router means little.
fn drivers(series: &Series) -> String {
    let median = |name| known(series.median(name), number);
    format!(
        "  {}: {} publications a run, 0 lost, doubled or out of order; {} Mbit/s, memory {}; drivers' \
         CPU/event {} µs, {} cores; the publisher was late by {} µs at p50, {} µs at p99; the rest \
         of the machine: {} cores busy",
        series.subject,
        known(series.median("publications"), thousands),
        median("mbit_per_s"),
        known(series.median("router_pss_bytes"), bytes),
        median("driver_cpu_us_per_event"),
        median("driver_busy_cores"),
        median("publisher_late_p50_us"),
        median("publisher_late_p99_us"),
        median(FOREIGN_BUSY),
    )
}

const PROFILE_COLUMNS: [&str; 13] = [
    "result",
    "heading\nevents/s",
    "load\nevents/s",
    "clients",
    "Hz",
    "batch",
    "bytes",
    "document\nlatency ms",
    "floor\np50 / p99 ms",
    "router\np50 / p99 ms",
    "p50 ÷ floor",
    "p99 ÷ floor",
    "document ÷ mean",
];

/// All results: heads, then rows.
pub(super) fn profiles(sections: &[&Section<Workload>], others: &[String]) -> Vec<Vec<String>> {
    let heads = PROFILE_COLUMNS.iter().map(ToString::to_string);
    let of_others = others.iter().map(|other| format!("{other}\np50 / p99 ms"));
    let heads: Vec<String> = heads.chain(of_others).collect();
    let rows = sections.iter().map(|section| profile_row(section, others));
    [heads].into_iter().chain(rows).collect()
}

fn profile_row(section: &Section<Workload>, others: &[String]) -> Vec<String> {
    let Some(profile) = section.case.profile else {
        return Vec::new();
    };
    let both = |series: Option<&Series>| {
        let median = |name| {
            let series = series?;
            series.median(name).map(|us| us / 1e3)
        };
        match (median(P50), median(P99)) {
            (Some(p50), Some(p99)) => format!("{p50:.3} / {p99:.3}"),
            _ => UNKNOWN.to_owned(),
        }
    };
    let router = section.own();
    let over = |name| {
        let ratio = section.over(router?, FLOOR, name)?;
        Some(ratio.median)
    };
    let document = match profile.latency_ms {
        Some(latency_ms) => number(latency_ms),
        None => "not given".to_owned(),
    };
    let mean_ms = router
        .and_then(|router| router.median("latency_avg_us"))
        .map(|us| us / 1e3);
    let document_over = profile
        .latency_ms
        .zip(mean_ms)
        .map(|(document, own)| document / own);
    let mut cells = vec![
        profile.result.to_string(),
        thousands(profile.heading_events_per_s),
        thousands(profile.events_per_s()),
        thousands(profile.clients as f64),
        profile.rate_hz.to_string(),
        profile.batch.to_string(),
        profile.payload_bytes.to_string(),
        document,
        both(section.subject(FLOOR)),
        both(router),
        known(over(P50), number),
        known(over(P99), number),
        known(document_over, number),
    ];
    for other in others {
        cells.push(both(section.subject(other)));
    }
    cells
}
