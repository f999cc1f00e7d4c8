//! `crosstie bench footprint`.

use std::path::PathBuf;
use std::process::ExitCode;

use crosstie_bench::footprint::{FootprintOptions, footprint};
use crosstie_bench::subject::case::Case;

use super::build;

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
    /// Write every round to this file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

pub(crate) fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    super::check_results_file(arguments.json.as_deref())?;
    footprint(arguments.into())?;
    Ok(ExitCode::SUCCESS)
}

impl From<Arguments> for FootprintOptions {
    fn from(arguments: Arguments) -> Self {
        Self {
            build: build(),
            sessions: arguments.sessions,
            starts: arguments.starts,
            cases: arguments.cases,
            router_threads: arguments.router_threads,
            json: arguments.json,
            ..Self::default()
        }
    }
}
