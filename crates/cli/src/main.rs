//! `crosstie`: the router and its instruments, by command line.
#![expect(
    clippy::print_stdout,
    reason = "this crate is the one that talks to a terminal"
)]

use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod analyze;
mod bench;
mod call;
mod check;
mod link;
mod logging;
mod publish;
mod register;
mod report;
mod signals;
mod start;
mod subscribe;
mod testee;
mod wamp_arguments;

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
    /// Check a configuration file without starting anything.
    Check(check::CheckArguments),
    Call(call::CallArguments),
    Register(register::RegisterArguments),
    Publish(publish::PublishArguments),
    Subscribe(subscribe::SubscribeArguments),
    /// Measure: this router, another one by its URL, and the machine's own floor.
    #[command(subcommand)]
    Bench(bench::Bench),
    /// Make one page of the benches' results files.
    Report(report::Arguments),
    /// Sum up handshake logs in the source document's form.
    Analyze(analyze::Arguments),
    /// Run a system to be measured: an echo server for WebSocket or plain streams.
    Testee(testee::Arguments),
    /// Relay a stream with a delay, as a longer line would.
    Link(link::Arguments),
    /// A process of a bench; started by it, of no use by hand.
    #[command(hide = true, name = crosstie_bench::worker::SUBCOMMAND)]
    BenchWorker {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
}

/// An error and its causes in one line, without those that the line has told already.
fn chain(e: &anyhow::Error) -> String {
    let mut line = String::new();
    for cause in e.chain().map(ToString::to_string) {
        if !line.ends_with(&cause) {
            let separator = if line.is_empty() { "" } else { ": " };
            line = [&line, separator, &cause].concat();
        }
    }
    line
}

/// Runs what the client library does on this thread.
fn wait_for(outcome: impl Future<Output = anyhow::Result<ExitCode>>) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(outcome)
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::Start(arguments) => start::run(&arguments),
        Command::Check(arguments) => Ok(check::run(&arguments)),
        Command::Call(arguments) => wait_for(call::run(arguments)),
        Command::Register(arguments) => wait_for(register::run(arguments)),
        Command::Publish(arguments) => wait_for(publish::run(arguments)),
        Command::Subscribe(arguments) => wait_for(subscribe::run(arguments)),
        Command::Bench(bench) => bench::run(bench),
        Command::Report(arguments) => report::run(arguments),
        Command::Analyze(arguments) => analyze::run(arguments),
        Command::Testee(arguments) => testee::run(arguments),
        Command::Link(arguments) => link::run(arguments),
        Command::BenchWorker { arguments } => return crosstie_bench::worker::main(&arguments),
    };
    outcome.unwrap_or_else(|e| {
        eprintln!("crosstie: {}", chain(&e));
        ExitCode::from(2)
    })
}
