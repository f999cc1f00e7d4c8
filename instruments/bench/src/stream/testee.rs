//! Our own testee, started like a user's.

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

/// The options of a testee.
pub(crate) struct Testee<'a> {
    pub(crate) executable: &'a Path,
    /// For its output during the start.
    pub(crate) directory: &'a Path,
    pub(crate) place: &'a Place,
    pub(crate) endpoint: Endpoint,
    pub(crate) mode: Mode,
    pub(crate) workers: usize,
}

const NAME: &str = "crosstie testee stream";

/// How long it may take to start.
const PATIENCE: Duration = Duration::from_secs(10);

/// Its line when all its workers accept; its sockets exist before.
const READY: &str = "listening on";

impl Testee<'_> {
    /// Starts it and waits until it accepts. Also returns the address for clients.
    pub(crate) fn start(&self, network: &Network) -> Result<(ServerProcess, Endpoint), BenchError> {
        let log = self.directory.join("testee.log");
        let mut command = guarded(self.executable, self.place, self.executable);
        command
            .args(["testee", "stream", "--mode", self.mode.name()])
            .args(["--listen", &Address::of(&self.endpoint)])
            .args(["--workers", &self.workers.to_string()])
            // Ctrl-C is for the bench, which ends this after its last sample.
            .process_group(0);
        let mut process = ServerProcess::spawn_logged(command, NAME, log.clone())?;
        process.wait_until(PATIENCE, || match fs::read_to_string(&log) {
            Ok(said) if said.contains(READY) => Ok(()),
            _ => Err("it does not listen".to_owned()),
        })?;
        Ok((process, network.reach(&self.endpoint)?))
    }
}
