//! `crosstie bench node`.

use std::path::PathBuf;
use std::process::ExitCode;

use crosstie_bench::node::{NodeOptions, node};
use crosstie_bench::peer::Peer;

use super::build;
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
    /// Measured seconds of each round.
    #[arg(long, default_value_t = 10.0)]
    seconds: f64,
    /// Seconds from the last caller's first line to the measured ones.
    #[arg(long, default_value_t = 5.0, value_name = "SECONDS")]
    warm_up: f64,
    /// Rounds, in each of which everybody takes a turn.
    #[arg(long, default_value_t = 3)]
    runs: usize,
    /// Calls between two of a caller's lines, where its configuration does not say.
    #[arg(long, default_value_t = 1000, value_name = "N")]
    batch: u64,
    /// crossbar: the same directory on a Crossbar.io found on PATH.
    #[arg(long = "peer", value_name = "PEER")]
    peers: Vec<Peer>,
    /// Write every round to this file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

pub(crate) fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    super::check_results_file(arguments.json.as_deref())?;
    let stop = stop_at_a_signal()?;
    let options = NodeOptions {
        build: build(),
        executable: None,
        directories: arguments.directories,
        native: arguments.native,
        python: arguments.python,
        seconds: arguments.seconds,
        warm_up_seconds: arguments.warm_up,
        runs: arguments.runs,
        batch: arguments.batch,
        peers: arguments.peers,
        json: arguments.json,
        stop: stop.clone(),
    };
    Ok(ended(&stop, node(options)?.is_valid()))
}
