//! `crosstie bench footprint`.

use std::process::ExitCode;

use crosstie_bench::{Case, FootprintOptions, footprint};

use super::common::FileArguments;
use super::stop::{ended, stop_at_a_signal};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Numbers of sessions to hold, growing; memory per session is between the first and the
    /// last.
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "1000,5000,10000,15000",
        value_name = "N,…"
    )]
    sessions: Vec<usize>,
    /// Starts to take the time of.
    #[arg(long, default_value_t = 10, value_name = "N")]
    starts: usize,
    /// As in bench rpc; may be repeated.
    #[arg(long = "case", value_name = "CASE")]
    cases: Vec<Case>,
    /// Threads of the router that is started.
    #[arg(long, default_value_t = 1, value_name = "N")]
    router_threads: usize,
    #[command(flatten)]
    file: FileArguments,
}

pub(crate) fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let stop = stop_at_a_signal()?;
    let usual = FootprintOptions::default();
    let options = FootprintOptions {
        common: arguments.file.common(usual.common, &stop)?,
        sessions: arguments.sessions,
        starts: arguments.starts,
        cases: arguments.cases,
        router_threads: arguments.router_threads,
        ..usual
    };
    Ok(ended(&stop, footprint(options)?.is_valid()))
}
