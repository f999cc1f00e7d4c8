//! `crosstie check`: judges a configuration file without starting anything.

use std::path::PathBuf;
use std::process::ExitCode;

use crosstie_config as config;

/// Prints every problem with its place; succeeds when there is no error.
#[derive(clap::Args)]
pub(crate) struct CheckArguments {
    /// Node configuration, Crossbar.io's version 2, JSON or YAML.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
}

pub(crate) fn run(arguments: &CheckArguments) -> ExitCode {
    let path = &arguments.config;
    match config::load(path, &|name| std::env::var(name).ok()) {
        Ok(loaded) => {
            if !loaded.warnings.is_empty() {
                eprintln!("{}", config::render(&loaded.warnings, &loaded.source));
            }
            println!("{}: a valid node configuration", path.display());
            ExitCode::SUCCESS
        }
        Err(failure) => {
            eprintln!("{failure}");
            ExitCode::FAILURE
        }
    }
}
