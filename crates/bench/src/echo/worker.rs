//! The driver of the echo bench, as a process of its own.

use serde::{Deserialize, Serialize};

use super::driver::{Driver, Findings, Load};
use crate::load::drive::Window;
use crate::process::worker::{Said, WorkerError, instruction, say};

pub(crate) const ROLE: &str = "echo";

/// What it says.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Report {
    /// All connections are open.
    Ready,
    Drove(Findings),
    Failed {
        why: String,
    },
}

impl Said for Report {
    fn failed(why: String) -> Self {
        Self::Failed { why }
    }

    fn is_last(&self) -> bool {
        !matches!(self, Self::Ready)
    }
}

/// Connects, waits for its window, and drives through it.
pub(crate) fn work(load: Load) -> Result<(), WorkerError> {
    let driver = Driver::connect(load)?;
    say(&Report::Ready);
    if let Some(window) = instruction::<Window>()? {
        say(&Report::Drove(driver.drive(window)?));
    }
    Ok(())
}
