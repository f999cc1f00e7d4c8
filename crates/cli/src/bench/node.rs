//! `crosstie bench node`.

use std::path::PathBuf;
use std::process::ExitCode;

use crosstie_bench::{NodeOptions, Peer, node};

use super::common::{RoundArguments, Usual};
use super::stop::{ended, stop_at_a_signal};

/// Runs a whole node as a user starts it, in a copy of its directory with ports of its own, and
/// takes the callers' averages and what each process uses.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// A directory with .crossbar/config.json or config.json in it, with components that print
    /// averages as the examples' callers do; may be repeated [default: both examples].
    #[arg(long = "directory", value_name = "DIRECTORY")]
    directories: Vec<PathBuf>,
    /// The example with native components, which needs no Python.
    #[arg(long)]
    native: bool,
    /// The interpreter of our containers [default: the one that the node takes].
    #[arg(long, value_name = "PROGRAM")]
    python: Option<PathBuf>,
    /// Calls between two of a caller's lines, where its configuration does not say.
    #[arg(long, alias = "batch", default_value_t = 1000, value_name = "N")]
    calls_per_line: u64,
    /// crossbar: the same directory on a Crossbar.io found on PATH.
    #[arg(long = "peer", value_name = "PEER")]
    peers: Vec<Peer>,
    #[command(flatten)]
    rounds: RoundArguments<OfNodes>,
}

struct OfNodes;

impl Usual for OfNodes {
    const RUNS: Option<&'static str> = Some("3");
    const SECONDS: Option<&'static str> = Some("10");
    const WARM_UP: Option<&'static str> = Some("5");
}

pub(crate) fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let stop = stop_at_a_signal()?;
    let options = NodeOptions {
        common: arguments.rounds.options(&stop)?,
        directories: arguments.directories,
        native: arguments.native,
        python: arguments.python,
        batch: arguments.calls_per_line,
        peers: arguments.peers,
    };
    Ok(ended(&stop, node(options)?.is_valid()))
}
