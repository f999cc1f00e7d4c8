//! Our own testee, started as a user would.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::time::Duration;

use super::address::Address;
use super::case::Mode;
use crate::error::BenchError;
use crate::network::Network;
use crate::process::Place;
use crate::subject::{Endpoint, ServerProcess, guarded};

/// How a testee is to be.
pub(crate) struct Testee<'a> {
    pub(crate) executable: &'a Path,
    /// For what it says while it starts.
    pub(crate) directory: &'a Path,
    pub(crate) place: &'a Place,
    pub(crate) endpoint: Endpoint,
    pub(crate) mode: Mode,
    pub(crate) workers: usize,
}

const NAME: &str = "crosstie testee stream";

/// How long it may take to start.
const PATIENCE: Duration = Duration::from_secs(10);

/// What it says when all its workers accept; its sockets are there before them.
const READY: &str = "listening on";

impl Testee<'_> {
    /// Starts it and waits until it accepts. Also returns where clients reach it.
    pub(crate) fn start(&self, network: &Network) -> Result<(ServerProcess, Endpoint), BenchError> {
        let log = self.directory.join("testee.log");
        let mut command = guarded(self.executable, self.place, self.executable);
        command
            .args(["testee", "stream", "--mode", self.mode.name()])
            .args(["--listen", &Address::of(&self.endpoint)])
            .args(["--workers", &self.workers.to_string()])
            // Ctrl-C is for the bench, which ends this when it has looked.
            .process_group(0);
        let mut process = ServerProcess::spawn_logged(command, NAME, log.clone())?;
        process.wait_until(PATIENCE, || match fs::read_to_string(&log) {
            Ok(said) if said.contains(READY) => Ok(()),
            _ => Err("it does not listen".to_owned()),
        })?;
        Ok((process, network.reach(&self.endpoint)?))
    }
}
