//! The driver of the echo bench, as a process of its own.

use super::driver::{Driver, Findings, Load};
use crate::load::Window;
use crate::process::worker::{Driver as Said, WorkerError, instruction, say};

pub(crate) const ROLE: &str = "echo";

pub(crate) fn work(load: Load) -> Result<(), WorkerError> {
    let driver = Driver::connect(load)?;
    say(&Said::<Findings>::Ready);
    if let Some(window) = instruction::<Window>()? {
        say(&Said::Found(driver.drive(window)?));
    }
    Ok(())
}
