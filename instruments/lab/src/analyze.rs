//! `crosstie analyze`: the source document's table of one or several handshake logs.

use std::path::PathBuf;
use std::process::ExitCode;

use crosstie_bench::{Analysis, Log};

use crate::output::print;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Logs of `crosstie bench handshake URL …` or of wsperf. Several logs become one table, as concurrent runs.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

pub(crate) fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let logs: Result<Vec<Log>, _> = arguments.files.iter().map(|file| Log::read(file)).collect();
    print(&Analysis::of(&logs?).to_string())?;
    Ok(ExitCode::SUCCESS)
}
