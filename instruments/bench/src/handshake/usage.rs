//! The machine's load in a round of WebSocket servers and nodes: by them, their driver, others.

use std::fmt;
use std::time::Duration;

use crate::figures::Series;
use crate::frame::{Limit, Section};
use crate::machine::Placement;
use crate::report::table::known;

const SERVER_BUSY: &str = "server_busy_cores";
const DRIVER_BUSY: &str = "driver_busy_cores";
const FOREIGN_BUSY: &str = "foreign_busy_cores";

/// How long workers may take to start, and to finish.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

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

/// The load, a line for each server.
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
