//! `crosstie bench all`.

use std::path::PathBuf;
use std::process::ExitCode;

use crosstie_bench::{AllOptions, Length, all, all_commands};

use super::counts;

/// Runs every bench as a process of its own, prints each command so that it can be repeated, and
/// makes a report of the results files. Goes on when a bench fails, and says so at the end.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Some seven minutes: whether everything works, and where figures lie [default].
    #[arg(long, conflicts_with = "full")]
    short: bool,
    /// Some fifty minutes: what is worth publishing.
    #[arg(long)]
    full: bool,
    /// Where the results files and report.html go; files of these names are overwritten.
    #[arg(long, default_value = "results", value_name = "DIRECTORY")]
    out: PathBuf,
    /// crossbar, autobahn, netserver or rabbitmq: measured by each bench that can start it; may be repeated.
    #[arg(long = "peer", value_name = "PEER")]
    peers: Vec<String>,
    /// Only these steps, by the names of their results files.
    #[arg(long, value_delimiter = ',', value_name = "STEP,…")]
    only: Vec<String>,
    /// Print the commands and run none.
    #[arg(long)]
    list: bool,
}

pub(crate) fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let options = AllOptions {
        length: if arguments.full {
            Length::Full
        } else {
            Length::Short
        },
        directory: arguments.out,
        peers: arguments.peers,
        only: arguments.only,
        executable: None,
    };
    if arguments.list {
        for command in all_commands(&options)? {
            say!("{command}")?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    Ok(counts(all(&options)?))
}
