//! `crosstie-lab`: the instruments by command line. `crosstie bench …` and the like become this program.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use crosstie_terminal::output::NotPrinted;
use crosstie_terminal::{CANNOT_RUN, logging, output, signals, wait_for};

#[macro_use(complain, say)]
extern crate crosstie_terminal;

mod analyze;
mod bench;
mod conformance;
mod link;
mod oslo;
mod report;
mod roundtrip;
mod testee;

/// Measure and judge WAMP routers and AMQP brokers.
#[derive(Parser)]
#[command(version, max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Measure this router, another one by its URL, and the machine's own floor.
    #[command(subcommand)]
    Bench(bench::Bench),
    #[command(subcommand)]
    Oslo(oslo::Oslo),
    /// Write one page of the benches' results files.
    Report(report::Arguments),
    /// Summarize handshake logs in the source document's form.
    Analyze(analyze::Arguments),
    /// Run a system to be measured: an echo server for WebSocket or plain streams.
    Testee(testee::Arguments),
    Conformance(conformance::Arguments),
    /// Relay a stream with a delay, like a longer line.
    Link(link::Arguments),
    /// Run the source document's pair of components: one call after the other.
    Roundtrip(roundtrip::Arguments),
    /// A process of a bench; started by it, of no use by hand.
    #[command(hide = true, name = crosstie_bench::WORKER_SUBCOMMAND)]
    BenchWorker {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
}

fn exit_code(error: &anyhow::Error) -> ExitCode {
    ExitCode::from(if error.is::<NotPrinted>() {
        1
    } else {
        CANNOT_RUN
    })
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::Bench(bench) => bench::run(bench),
        Command::Oslo(oslo) => oslo::run(oslo),
        Command::Report(arguments) => report::run(arguments),
        Command::Analyze(arguments) => analyze::run(arguments),
        Command::Testee(arguments) => testee::run(arguments),
        Command::Conformance(arguments) => conformance::run(arguments),
        Command::Link(arguments) => link::run(arguments),
        Command::Roundtrip(arguments) => roundtrip::run(arguments),
        Command::BenchWorker { arguments } => return crosstie_bench::worker(&arguments),
    };
    crosstie_terminal::end(outcome, exit_code)
}
