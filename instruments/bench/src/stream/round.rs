//! One round seen from the bench: a fresh driver, and the usage by driver and server.

use std::path::Path;
use std::time::Duration;

use super::driver::{Driven, DriverOrder, DriverReport, Go, ROLE};
use crate::figures::Figures;
use crate::load::Latencies;
use crate::machine::{Usage, Used};
use crate::process::{Place, Workers};

pub(super) struct Plan<'a> {
    pub(super) executable: &'a Path,
    pub(super) place: &'a Place,
    pub(super) order: &'a DriverOrder,
    /// The server's; without any its processor time stays unknown.
    pub(super) processes: &'a [u32],
    pub(super) go: Go,
}

/// How long a driver may exceed its time; it detects a stalled server itself.
const PATIENCE: Duration = Duration::from_secs(20);

/// Checks that the server is there and behaves as the case requires.
pub(super) fn probe(plan: &Plan<'_>) -> Result<(), String> {
    ready(plan).map(|_| ())
}

pub(super) fn run(plan: &Plan<'_>) -> Result<Figures, String> {
    let mut driver = ready(plan)?;
    driver.tell(0, &plan.go);
    let begin = plan.go.warm_up + PATIENCE;
    driver.expect(begin, "the driver should begin", |report| match report {
        DriverReport::Begun => Ok(()),
        other => Err(other),
    })?;
    let before = Usage::now(plan.processes, &[]);
    let end = plan.go.measured + PATIENCE;
    let driven = driver.expect(end, "the driver should end", |report| match report {
        DriverReport::Driven(driven) => Ok(driven),
        other => Err(other),
    });
    let used = Usage::now(plan.processes, &[]).since(&before);
    Ok(figures(plan, &driven?, &used))
}

fn ready(plan: &Plan<'_>) -> Result<Workers<DriverReport>, String> {
    let mut driver = Workers::default();
    driver
        .start(plan.executable, ROLE, plan.place, plan.order)
        .map_err(|error| error.to_string())?;
    driver.expect(
        PATIENCE,
        "the driver should be ready",
        |report| match report {
            DriverReport::Ready => Ok(()),
            other => Err(other),
        },
    )?;
    Ok(driver)
}

fn figures(plan: &Plan<'_>, driven: &Driven, used: &Used) -> Figures {
    let used = used.with_drivers(driven.cpu_ns as f64);
    let driver_ns = used.drivers_ns;
    let mut figures = Figures::new()
        .with("elapsed_s", driven.seconds)
        .with("send_buffer_bytes", driven.send_buffer_bytes as f64)
        .with("receive_buffer_bytes", driven.receive_buffer_bytes as f64)
        .with_known(
            "server_busy_cores",
            used.subject_ns.map(|ns| used.cores(ns)),
        )
        .with("driver_busy_cores", driver_ns / 1e9 / driven.seconds)
        .with("foreign_busy_cores", used.cores(used.others_ns));
    if plan.order.case.test.is_transactional() {
        let count = driven.transactions as f64;
        let latencies = Latencies::of(&driven.recorded);
        figures = figures
            .with("transactions", count)
            .with("transactions_per_s", count / driven.seconds)
            .with_times("rtt", &latencies.summary())
            .with_known(
                "server_cpu_us_per_transaction",
                used.subject_ns.map(|ns| ns / 1e3 / count),
            )
            .with("driver_cpu_us_per_transaction", driver_ns / 1e3 / count);
    } else {
        let bytes = driven.bytes as f64;
        figures = figures
            .with("bytes", bytes)
            .with("megabits_per_s", bytes * 8.0 / 1e6 / driven.seconds)
            .with_known(
                "server_cpu_ns_per_byte",
                used.subject_ns.map(|ns| ns / bytes),
            )
            .with("driver_cpu_ns_per_byte", driver_ns / bytes);
    }
    figures
}
