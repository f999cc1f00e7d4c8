//! One round seen from the bench: a fresh driver, and what driver and broker spent meanwhile.

use std::path::Path;
use std::time::{Duration, Instant};

use super::worker::{Finding, Order, ROLE, Report};
use crate::figures::Figures;
use crate::frame::window::Ahead;
use crate::machine::accounting::{Usage, Used};
use crate::process::crew::Crew;
use crate::process::place::Place;
use crate::process::stop::Stop;

/// What a round is to do.
pub(super) struct Plan<'a> {
    pub(super) executable: &'a Path,
    pub(super) place: &'a Place,
    pub(super) order: &'a Order,
    /// Of the broker; without any its processor time stays unknown.
    pub(super) processes: &'a [u32],
    pub(super) warm_up: Duration,
    pub(super) measured: Duration,
    pub(super) stop: &'a Stop,
}

/// How long a driver may take to start, and for the last messages.
const PATIENCE: Duration = Duration::from_secs(30);
/// How soon a stop is seen.
const LOOK: Duration = Duration::from_millis(100);
/// Runs one round.
pub(super) fn run(plan: &Plan<'_>) -> Result<Figures, String> {
    let mut crew = Crew::default();
    crew.hire(plan.executable, ROLE, plan.place, plan.order)
        .map_err(|error| error.to_string())?;
    match next(&crew, plan, Instant::now() + PATIENCE)? {
        Some(Report::Ready) => {}
        other => return Err(format!("{other:?} where the driver should be ready")),
    }
    let ahead = Ahead::of(plan.warm_up, plan.measured);
    crew.tell(0, &ahead.told);
    let drivers = crew.processes();
    // The bench itself may get a processor late, when the driver is done already.
    let mut found = None;
    let mut listen = |until| {
        while found.is_none() {
            match next(&crew, plan, until)? {
                Some(Report::Driven(finding)) => found = Some(finding),
                Some(other) => return Err(format!("{other:?} where the driver should end")),
                None => break,
            }
        }
        std::thread::sleep(until.saturating_duration_since(Instant::now()));
        Ok(())
    };
    listen(ahead.start)?;
    let before = Usage::now(plan.processes, &drivers);
    listen(ahead.end)?;
    let used = Usage::now(plan.processes, &drivers).since(&before);
    if found.is_none() {
        found = match next(&crew, plan, Instant::now() + PATIENCE)? {
            Some(Report::Driven(finding)) => Some(finding),
            _ => None,
        };
    }
    match found {
        Some(finding) => figures(plan, &finding, &used),
        None => Err("the driver did not finish".to_owned()),
    }
}

/// The next report; nothing where there is none until `deadline`.
fn next(crew: &Crew<Report>, plan: &Plan<'_>, deadline: Instant) -> Result<Option<Report>, String> {
    loop {
        if plan.stop.is_wished() {
            return Err("interrupted".to_owned());
        }
        let look = deadline.min(Instant::now() + LOOK);
        match crew.next(look) {
            None if look < deadline => {}
            None => return Ok(None),
            Some((_, Report::Failed { why })) => return Err(why),
            Some((_, report)) => return Ok(Some(report)),
        }
    }
}

fn figures(plan: &Plan<'_>, finding: &Finding, used: &Used) -> Result<Figures, String> {
    if let Some(why) = finding.faults.describe() {
        return Err(why);
    }
    let messages = finding.traffic.messages;
    if messages == 0 {
        return Err("no message in time".to_owned());
    }
    let per_s = messages as f64 / plan.measured.as_secs_f64();
    let per_message = |ns| used.us_per_operation(ns, per_s);
    let (p50, p99) = finding.confirm_us.unzip();
    Ok(Figures::new()
        .with_known("confirm_p50_us", p50.map(|us| us as f64))
        .with_known("confirm_p99_us", p99.map(|us| us as f64))
        .with("messages", messages as f64)
        .with("published", finding.published as f64)
        .with("messages_per_s", per_s)
        .with("messages_per_read", finding.traffic.messages_per_read())
        .with_known(
            "broker_cpu_us_per_message",
            used.subject_ns.map(per_message),
        )
        .with_known(
            "broker_busy_cores",
            used.subject_ns.map(|ns| used.cores(ns)),
        )
        .with("driver_cpu_us_per_message", per_message(used.drivers_ns))
        .with("driver_busy_cores", used.cores(used.drivers_ns))
        .with("foreign_busy_cores", used.cores(used.others_ns)))
}
