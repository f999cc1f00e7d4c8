//! One round seen from the bench: a fresh driver, and what driver and server spent meanwhile.

use std::path::Path;
use std::time::{Duration, Instant};

use super::driver::{Driven, DriverOrder, Go, ROLE, Report};
use crate::accounting::{CpuTime, machine_busy};
use crate::crew::Crew;
use crate::figures::Figures;
use crate::histogram::Latencies;
use crate::place::Place;

/// What a round is to do.
pub(super) struct Plan<'a> {
    pub(super) executable: &'a Path,
    pub(super) place: &'a Place,
    pub(super) order: &'a DriverOrder,
    /// Of the server; without any its processor time stays unknown.
    pub(super) processes: &'a [u32],
    pub(super) go: Go,
}

/// How long a driver may take beyond what it is told to; it finds out itself when its server
/// stands still.
const PATIENCE: Duration = Duration::from_secs(20);

/// Whether the server is there and does what the case says.
pub(super) fn probe(plan: &Plan<'_>) -> Result<(), String> {
    ready(plan).map(|_| ())
}

/// Runs one round.
pub(super) fn run(plan: &Plan<'_>) -> Result<Figures, String> {
    let mut crew = ready(plan)?;
    crew.tell(0, &plan.go);
    match next(&crew, plan.go.warm_up)? {
        Report::Begun => {}
        other => return Err(format!("{other:?} where the driver should begin")),
    }
    let before = Usage::now(plan.processes);
    let report = next(&crew, plan.go.measured)?;
    let after = Usage::now(plan.processes);
    match report {
        Report::Driven(driven) => Ok(figures(plan, &driven, &before, &after)),
        other => Err(format!("{other:?} where the driver should end")),
    }
}

fn ready(plan: &Plan<'_>) -> Result<Crew<Report>, String> {
    let mut crew = Crew::default();
    crew.hire(plan.executable, ROLE, plan.place, plan.order)
        .map_err(|error| error.to_string())?;
    match next(&crew, Duration::ZERO)? {
        Report::Ready => Ok(crew),
        other => Err(format!("{other:?} where the driver should be ready")),
    }
}

fn next(crew: &Crew<Report>, expected: Duration) -> Result<Report, String> {
    match crew.next(Instant::now() + expected + PATIENCE) {
        Some((_, Report::Failed { why })) => Err(why),
        Some((_, report)) => Ok(report),
        None => Err("the driver does not say anything".to_owned()),
    }
}

/// Processor time at one moment. The driver says its own.
struct Usage {
    at: Instant,
    server: CpuTime,
    machine_ns: u64,
}

impl Usage {
    fn now(server: &[u32]) -> Self {
        Self {
            at: Instant::now(),
            server: CpuTime::of(server),
            machine_ns: machine_busy(),
        }
    }
}

fn figures(plan: &Plan<'_>, driven: &Driven, before: &Usage, after: &Usage) -> Figures {
    let seconds = (after.at - before.at).as_secs_f64();
    let known = !plan.processes.is_empty();
    let server_ns = after.server.since(&before.server) as f64;
    let driver_ns = driven.cpu_ns as f64;
    let machine_ns = after.machine_ns.saturating_sub(before.machine_ns) as f64;
    let foreign_ns = (machine_ns - server_ns - driver_ns).max(0.0);
    let mut figures = Figures::new()
        .with("elapsed_s", driven.seconds)
        .with("send_buffer_bytes", driven.send_buffer_octets as f64)
        .with("receive_buffer_bytes", driven.receive_buffer_octets as f64)
        .with_known(
            "server_busy_cores",
            known.then(|| server_ns / 1e9 / seconds),
        )
        .with("driver_busy_cores", driver_ns / 1e9 / driven.seconds)
        .with("foreign_busy_cores", foreign_ns / 1e9 / seconds);
    if plan.order.case.test.is_transactional() {
        let count = driven.transactions as f64;
        let mut latencies = Latencies::default();
        latencies.add(&driven.recorded);
        let rtt_us = latencies.summary();
        figures = figures
            .with("transactions", count)
            .with("transactions_per_s", count / driven.seconds)
            .with("rtt_avg_us", rtt_us.avg)
            .with("rtt_p50_us", rtt_us.p50)
            .with("rtt_p99_us", rtt_us.p99)
            .with("rtt_p99_9_us", rtt_us.p99_9)
            .with("rtt_max_us", rtt_us.max)
            .with_known(
                "server_cpu_us_per_transaction",
                known.then(|| server_ns / 1e3 / count),
            )
            .with("driver_cpu_us_per_transaction", driver_ns / 1e3 / count);
    } else {
        let octets = driven.octets as f64;
        figures = figures
            .with("bytes", octets)
            .with("megabits_per_s", octets * 8.0 / 1e6 / driven.seconds)
            .with_known("server_cpu_ns_per_byte", known.then(|| server_ns / octets))
            .with("driver_cpu_ns_per_byte", driver_ns / octets);
    }
    figures
}
