//! The results of one run: its figures, and whether they count.

use super::ledger::Found;
use super::publisher::Published;
use crate::figures::Figures;
use crate::load::{Faults, Latencies, Traffic};
use crate::machine::{Memory, Used};
use crate::report::table::{known, number, thousands};

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Round {
    pub(super) figures: Figures,
    /// The reason why it does not count, if it does not.
    pub(super) fault: Option<String>,
}

/// Names of figures that are used again.
pub(super) const P50: &str = "latency_p50_us";
pub(super) const P99: &str = "latency_p99_us";
pub(super) const EVENTS_PER_S: &str = "events_per_s";
pub(super) const CPU_PER_EVENT: &str = "router_cpu_us_per_event";
pub(super) const BUSY: &str = "router_busy_cores";
pub(super) const FOREIGN_BUSY: &str = "foreign_busy_cores";

impl Round {
    /// In the form of a series. The results before a fault are reported with the fault.
    pub(super) fn into_result(self) -> Result<Figures, String> {
        let Some(fault) = self.fault else {
            return Ok(self.figures);
        };
        let figure = |name, form| known(self.figures.value(name), form);
        Err(format!(
            "{fault} (found until then: {} publications, {} events, latency {} µs at p50, {} µs at \
             p99)",
            figure("publications", thousands),
            figure("events", thousands),
            figure(P50, number),
            figure(P99, number),
        ))
    }
}

pub(super) fn judge(
    clients: usize,
    made: &Published,
    found: &[Found],
    used: &Used,
    memory: Option<Memory>,
) -> Round {
    let mut latencies = Latencies::default();
    let late = Latencies::of(&made.late);
    let mut faults = Faults::default();
    let mut traffic = Traffic::default();
    let (mut events, mut bytes) = (0, 0);
    for found in found {
        latencies.add(&found.recorded);
        faults.add(found.faults);
        traffic.add(found.traffic);
        events += found.events_in_window;
        bytes += found.bytes_in_window;
    }
    let events_per_s = events as f64 / used.seconds;
    let late = late.summary();
    let mut figures = Figures::new()
        .with("publications", made.published as f64)
        .with("publications_per_s", events_per_s / clients.max(1) as f64)
        .with("events", events as f64)
        .with(EVENTS_PER_S, events_per_s)
        .with("mbit_per_s", bytes as f64 * 8.0 / 1e6 / used.seconds)
        .with_usage("router", "event", used, events_per_s)
        .with_known(
            "router_pss_bytes",
            memory
                .filter(|_| used.subject_ns.is_some())
                .map(|m| m.pss as f64),
        )
        .with("events_per_read", traffic.messages_per_read())
        .with("publisher_late_p50_us", late.p50)
        .with("publisher_late_p99_us", late.p99)
        .with("publisher_late_max_us", late.max);
    if latencies.count() > 0 {
        figures = figures.with_times("latency", &latencies.summary());
    }
    Round {
        figures,
        fault: fault(clients, made, found, faults),
    }
}

/// The reason why it does not count.
fn fault(clients: usize, made: &Published, found: &[Found], faults: Faults) -> Option<String> {
    let mut why: Vec<String> = Vec::new();
    why.extend(made.broken.clone());
    let gone: usize = found.iter().map(|found| found.gone).sum();
    if gone > 0 {
        let farewell = found.iter().find_map(|found| found.farewell.as_deref());
        let farewell = farewell.map_or_else(String::new, |text| format!(" ({text})"));
        why.push(format!(
            "{gone} of {clients} subscribers were closed{farewell}"
        ));
    }
    why.extend(faults.describe());
    if made.unpublished > 0 {
        let unpublished = made.unpublished;
        why.push(format!(
            "the publisher fell behind its schedule by 2 s and left out {unpublished} publications"
        ));
    }
    if made.unacknowledged > 0 {
        let unacknowledged = made.unacknowledged;
        why.push(format!(
            "{unacknowledged} publications were not acknowledged"
        ));
    }
    if why.is_empty() && found.iter().all(|found| found.events == 0) {
        why.push("no event came".to_owned());
    }
    (!why.is_empty()).then(|| why.join(", "))
}
