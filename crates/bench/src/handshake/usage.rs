//! What a server and its driver spend in a round, and how busy the rest of the machine is.

use std::fmt;
use std::time::Duration;

use crate::figures::{Figures, Series};
use crate::frame::{Limit, Section};
use crate::machine::{Placement, Used};
use crate::report::table::known;

const SERVER_BUSY: &str = "server_busy_cores";
const DRIVER_BUSY: &str = "driver_busy_cores";
const FOREIGN_BUSY: &str = "foreign_busy_cores";

/// How long workers may take to start, and to finish.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// Cores kept busy, and what each operation took at a rate of so many in a second.
pub(crate) fn figures(used: &Used, operation: &str, rate: f64) -> Figures {
    let cores = |nanoseconds| used.cores(nanoseconds);
    let per_operation = |nanoseconds| used.us_per_operation(nanoseconds, rate);
    Figures::new()
        .with_known(SERVER_BUSY, used.subject_ns.map(cores))
        .with(DRIVER_BUSY, cores(used.drivers_ns))
        .with(FOREIGN_BUSY, cores(used.others_ns))
        .with_known(
            &format!("server_cpu_us_per_{operation}"),
            used.subject_ns.map(per_operation),
        )
        .with(
            &format!("driver_cpu_us_per_{operation}"),
            per_operation(used.drivers_ns),
        )
}

/// A server has one thread. On one core for both it is that core which must be busy.
pub(crate) fn limit(placement: Option<Placement>) -> Limit {
    Limit {
        busy: match placement {
            Some(Placement::SameCore) => &[SERVER_BUSY, DRIVER_BUSY],
            _ => &[SERVER_BUSY],
        },
        cores: 1.0,
    }
}

/// Who was busy, a line for each server.
pub(crate) fn lines<C: fmt::Display>(section: &Section<C>) -> Vec<String> {
    let line = |series: &Series| {
        let cores = |figure| known(series.median(figure), |cores| format!("{cores:.2}"));
        format!(
            "  {}: {} cores busy, the driver {}, the rest of the machine {}",
            series.subject,
            cores(SERVER_BUSY),
            cores(DRIVER_BUSY),
            cores(FOREIGN_BUSY),
        )
    };
    section.series.iter().map(line).collect()
}
