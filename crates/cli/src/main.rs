//! `crosstie`: the router and its instruments, by command line.
#![expect(
    clippy::print_stdout,
    reason = "this crate is the one that talks to a terminal"
)]

use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod logging;
mod start;

/// A message router for WAMP, and the instruments that measure it.
#[derive(Parser)]
#[command(name = "crosstie", version, max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Start the router: on its embedded default, or with a configuration file.
    Start(start::StartArguments),
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::Start(arguments) => start::run(&arguments),
    };
    outcome.unwrap_or_else(|e| {
        eprintln!("crosstie: {e:#}");
        ExitCode::from(2)
    })
}
