//! The driver of a comparison, as a process of its own: it makes one run after the other, on command.

use std::io;

use serde::{Deserialize, Serialize};

use super::opening::Target;
use super::run::{Run, RunOptions, run};
use crate::load::{Latencies, Recorded};
use crate::machine::accounting::own_cpu_ns;
use crate::process::{Driver, WorkerError, instruction, say};

pub(crate) const ROLE: &str = "handshake";

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) target: Target,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Ran {
    pub(crate) succeeded: u64,
    pub(crate) duration_us: i64,
    pub(crate) open: Recorded,
    pub(crate) close: Recorded,
    pub(crate) left_open: u64,
    /// This process's processor time for it.
    pub(crate) cpu_ns: u64,
    pub(crate) fault: Option<String>,
}

pub(crate) fn work(order: Order) -> Result<(), WorkerError> {
    say(&Driver::<Ran>::Ready);
    while let Some(options) = instruction::<RunOptions>()? {
        let before_ns = own_cpu_ns();
        let run = run(&order.target, &options, &mut |_| {}).map_err(io::Error::other)?;
        say(&Driver::Found(Ran::of(&run, own_cpu_ns() - before_ns)));
    }
    Ok(())
}

impl Ran {
    fn of(run: &Run, cpu_ns: u64) -> Self {
        let mut open = Latencies::default();
        let mut close = Latencies::default();
        for connection in run.succeeded() {
            open.record(connection.open.unsigned_abs() * 1000);
            close.record(connection.close.unsigned_abs() * 1000);
        }
        Self {
            succeeded: open.count(),
            duration_us: run.log.total_duration,
            open: open.recorded(),
            close: close.recorded(),
            left_open: run.left_open,
            cpu_ns,
            fault: run.fault(),
        }
    }
}
