//! `crosstie bench …`: the instruments.

use std::process::ExitCode;

use clap::Subcommand;
use crosstie_bench::Build;

mod accept;
mod all;
mod amqp;
mod common;
mod echo;
mod footprint;
mod handshake;
mod hostile;
mod network;
mod node;
mod oslo;
mod pubsub;
mod rpc;
mod stop;
mod stream;

#[derive(Subcommand)]
pub(crate) enum Bench {
    /// The round trip of a call, beside the machine's floor and the source document's figures.
    Rpc(Box<rpc::Arguments>),
    /// Publish & Subscribe under load: latency, dispatched events, what the router spends.
    Pubsub(Box<pubsub::Arguments>),
    /// WebSocket opening and closing handshakes, as wsperf counts them.
    Handshake(Box<handshake::Arguments>),
    /// Echoed WebSocket messages.
    Echo(Box<echo::Arguments>),
    /// A stream's transactions, throughput and connections, in netperf's terms.
    Stream(Box<stream::Arguments>),
    /// Connections opened in batches and held.
    Accept(Box<accept::Arguments>),
    /// A whole node: its start, its callers' averages, what each of its processes uses.
    Node(Box<node::Arguments>),
    /// The calls and casts of oslo.messaging over a broker of AMQP 0-9-1, at hand and far away.
    Oslo(Box<oslo::Arguments>),
    /// Messages from publishers through a queue to consumers, transient and durable.
    Amqp(Box<amqp::Arguments>),
    /// What one peer can do to everybody else: attacks, and a witness beside them.
    Hostile(Box<hostile::Arguments>),
    /// Start-up time, idle memory, memory per idle session, size of the binary.
    Footprint(footprint::Arguments),
    /// Every bench on a schedule, then the report.
    All(all::Arguments),
}

pub(crate) fn run(bench: Bench) -> anyhow::Result<ExitCode> {
    match bench {
        Bench::Rpc(arguments) => rpc::run(*arguments),
        Bench::Pubsub(arguments) => pubsub::run(*arguments),
        Bench::Handshake(arguments) => handshake::run(*arguments),
        Bench::Echo(arguments) => echo::run(*arguments),
        Bench::Stream(arguments) => stream::run(*arguments),
        Bench::Accept(arguments) => accept::run(*arguments),
        Bench::Node(arguments) => node::run(*arguments),
        Bench::Oslo(arguments) => oslo::run(*arguments),
        Bench::Amqp(arguments) => amqp::run(*arguments),
        Bench::Hostile(arguments) => hostile::run(*arguments),
        Bench::Footprint(arguments) => footprint::run(arguments),
        Bench::All(arguments) => all::run(arguments),
    }
}

/// A script must notice a run in which something was lost or went wrong without reading the table. A
/// figure that only does not count, as on a busy machine, is marked there.
fn counts(valid: bool) -> ExitCode {
    if valid {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// What stands in every results file about this program.
pub(crate) fn build() -> Build {
    Build {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        commit: env!("CROSSTIE_COMMIT").to_owned(),
    }
}
