//! What can be asked of `bench node`.

use std::path::PathBuf;

use crate::error::BenchError;
use crate::peer::Peer;
use crate::process::stop::Stop;
use crate::report::json::Build;

/// Everything that can be asked of the bench.
#[derive(Clone, Debug)]
pub struct NodeOptions {
    pub build: Build,
    /// The `crosstie` to start; by default the one that runs.
    pub executable: Option<PathBuf>,
    /// Node directories; without any, the two examples.
    pub directories: Vec<PathBuf>,
    /// The example with native components, alone or beside `directories`.
    pub native: bool,
    /// For containers, in place of the interpreter that the node would take.
    pub python: Option<PathBuf>,
    /// Measured time of each round.
    pub seconds: f64,
    /// From the first line of the last caller to the measured time.
    pub warm_up_seconds: f64,
    pub runs: usize,
    /// Calls between two of a caller's lines, where its configuration does not say.
    pub batch: u64,
    pub peers: Vec<Peer>,
    pub json: Option<PathBuf>,
    /// Ends the run; the round that it is in does not count.
    pub stop: Stop,
}

impl Default for NodeOptions {
    fn default() -> Self {
        Self {
            build: Build::default(),
            executable: None,
            directories: Vec::new(),
            native: false,
            python: None,
            seconds: 10.0,
            warm_up_seconds: 5.0,
            runs: 3,
            batch: 1000,
            peers: Vec::new(),
            json: None,
            stop: Stop::default(),
        }
    }
}

impl NodeOptions {
    pub(super) fn check(&self) -> Result<(), BenchError> {
        let require = |held: bool, rule: &str| match held {
            true => Ok(()),
            false => Err(BenchError::Options(rule.to_owned())),
        };
        require(
            (0.1..3_600.0).contains(&self.seconds),
            "--seconds is 0.1 to 3,600",
        )?;
        require(
            (0.0..600.0).contains(&self.warm_up_seconds),
            "--warm-up is 0 to 600",
        )?;
        require(self.runs > 0, "--runs is at least 1")?;
        require(self.batch > 0, "--batch is at least 1")
    }
}
