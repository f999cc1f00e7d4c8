//! What a server and its driver spend in a round, and how busy the rest of the machine is.

use crate::figures::Figures;
use crate::machine::accounting::Used;

pub(super) const SERVER_BUSY: &str = "server_busy_cores";
pub(super) const DRIVER_BUSY: &str = "driver_busy_cores";
pub(super) const FOREIGN_BUSY: &str = "foreign_busy_cores";

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
