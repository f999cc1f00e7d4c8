//! What a server and its driver spend in a round, and how busy the rest of the machine is.

use std::time::Instant;

use super::servers::Server;
use crate::accounting::{CpuTime, machine_busy};
use crate::figures::Figures;

pub(super) const SERVER_BUSY: &str = "server_busy_cores";
pub(super) const DRIVER_BUSY: &str = "driver_busy_cores";
pub(super) const FOREIGN_BUSY: &str = "foreign_busy_cores";

/// Everybody's processor time at one moment.
pub(crate) struct Usage {
    at: Instant,
    server: CpuTime,
    driver: CpuTime,
    machine: u64,
}

impl Usage {
    pub(crate) fn now(server: &Server, driver: &[u32]) -> Self {
        Self {
            at: Instant::now(),
            server: CpuTime::of(&server.processes),
            driver: CpuTime::of(driver),
            machine: machine_busy(),
        }
    }

    /// What was used since.
    pub(crate) fn until_now(&self, server: &Server, driver: &[u32]) -> Used {
        let now = Self::now(server, driver);
        let seconds = now.at.duration_since(self.at).as_secs_f64();
        let per_second = |nanoseconds: u64| nanoseconds as f64 / 1e9 / seconds;
        let server_cores = per_second(now.server.since(&self.server));
        let driver_cores = per_second(now.driver.since(&self.driver));
        let machine_cores = per_second(now.machine.saturating_sub(self.machine));
        Used {
            server_cores: (!server.processes.is_empty()).then_some(server_cores),
            driver_cores,
            others_cores: (machine_cores - server_cores).max(0.0),
            seconds,
        }
    }
}

/// Processor seconds per second.
pub(crate) struct Used {
    /// Unknown of a server whose processes are.
    server_cores: Option<f64>,
    driver_cores: f64,
    /// All but the server.
    others_cores: f64,
    seconds: f64,
}

impl Used {
    /// With what the driver itself says that it used: the kernel's accounts forget threads that
    /// have ended.
    pub(crate) fn with_driver(self, nanoseconds: u64) -> Self {
        Self {
            driver_cores: nanoseconds as f64 / 1e9 / self.seconds,
            ..self
        }
    }

    /// The same, and what each operation took at a rate of so many in a second.
    pub(crate) fn figures(&self, operation: &str, rate: f64) -> Figures {
        let per_operation = |cores: f64| cores * 1e6 / rate;
        Figures::new()
            .with_known(SERVER_BUSY, self.server_cores)
            .with(DRIVER_BUSY, self.driver_cores)
            .with(
                FOREIGN_BUSY,
                (self.others_cores - self.driver_cores).max(0.0),
            )
            .with_known(
                &format!("server_cpu_us_per_{operation}"),
                self.server_cores.map(per_operation),
            )
            .with(
                &format!("driver_cpu_us_per_{operation}"),
                per_operation(self.driver_cores),
            )
    }
}
