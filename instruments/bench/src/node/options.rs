//! The options of `bench node`.

use std::path::PathBuf;

use crate::error::BenchError;
use crate::frame::{Common, Host, RoundOptions, Usual, require};
use crate::peer::Peer;

/// Run a whole node like a user's, in a copy of its directory with ports of its own, and record the callers' averages
/// and each process's usage.
#[derive(Clone, Debug, clap::Args)]
pub struct NodeOptions {
    /// The warm-up begins at the first line of the last caller.
    #[arg(skip)]
    pub(super) common: Common,
    /// Directory with .crossbar/config.json or config.json, whose components print averages as the examples' callers
    /// do; may be repeated [default: both examples].
    #[arg(long = "directory", value_name = "DIRECTORY")]
    pub(super) directories: Vec<PathBuf>,
    /// Measure the example with native components, which needs no Python.
    #[arg(long)]
    pub(super) native: bool,
    /// Interpreter of the containers [default: the node's own choice].
    #[arg(long, value_name = "PROGRAM")]
    pub(super) python: Option<PathBuf>,
    /// Calls between two of a caller's lines, unless its configuration sets them.
    #[arg(
        long = "calls-per-line",
        alias = "batch",
        default_value_t = 1000,
        value_name = "N"
    )]
    pub(super) batch: u64,
    /// crossbar: the same directory on a Crossbar.io found on PATH.
    #[arg(long = "peer", value_name = "PEER")]
    pub(super) peers: Vec<Peer>,
    #[command(flatten)]
    pub(super) rounds: RoundOptions<OfNodes>,
}

#[derive(Clone, Debug)]
pub(super) struct OfNodes;

impl Usual for OfNodes {
    const RUNS: Option<&'static str> = Some("3");
    const SECONDS: Option<&'static str> = Some("10");
    const WARM_UP: Option<&'static str> = Some("5");
}

impl NodeOptions {
    pub(super) fn on(mut self, host: Host) -> Result<Self, BenchError> {
        self.common = self.rounds.common(host)?;
        self.check()?;
        Ok(self)
    }

    fn check(&self) -> Result<(), BenchError> {
        require(self.batch > 0, "--calls-per-line is at least 1")
    }
}
