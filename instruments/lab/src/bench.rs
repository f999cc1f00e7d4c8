//! `crosstie bench …`: the instruments. What each of them takes is theirs to say; here is how they end.

use std::process::ExitCode;

use clap::Subcommand;
use crosstie_bench::{
    self as bench, AcceptOptions, AllOptions, AmqpOptions, BenchError, Build, EchoOptions,
    FabricOptions, FootprintOptions, HandshakeOptions, Host, HostileOptions, HttpOptions,
    JoinOptions, NodeOptions, OsloOptions, PubSubOptions, RpcOptions, Stop, StreamOptions,
};

use crate::signals::{INTERRUPTED, end_in_good_order};

#[derive(Subcommand)]
pub(crate) enum Bench {
    /// The round trip of a call, beside the machine's floor and the source document's figures.
    Rpc(Box<RpcOptions>),
    /// Publish & Subscribe under load: latency, dispatched events, what the router spends.
    Pubsub(Box<PubSubOptions>),
    /// WebSocket opening and closing handshakes, as wsperf counts them.
    Handshake(Box<HandshakeOptions>),
    /// Echoed WebSocket messages.
    Echo(Box<EchoOptions>),
    /// A stream's transactions, throughput and connections, in netperf's terms.
    Stream(Box<StreamOptions>),
    /// Connections opened in batches and held.
    Accept(Box<AcceptOptions>),
    /// A whole node: its start, its callers' averages, what each of its processes uses.
    Node(Box<NodeOptions>),
    /// The calls and casts of oslo.messaging over a broker of AMQP 0-9-1, at hand and far away.
    Oslo(Box<OsloOptions>),
    /// Messages from publishers through a queue to consumers, transient and durable.
    Amqp(Box<AmqpOptions>),
    /// What one peer can do to everybody else: attacks, and a witness beside them.
    Hostile(Box<HostileOptions>),
    /// Sessions that join and leave, by each method of authentication.
    Join(Box<JoinOptions>),
    /// HTTP requests to web services: a small file, calls, publications.
    Http(Box<HttpOptions>),
    /// A realm on two nodes, beside one on one and NATS alone: calls, events.
    Fabric(Box<FabricOptions>),
    /// Start-up time, idle memory, memory per idle session, size of the binary.
    Footprint(Box<FootprintOptions>),
    /// Every bench on a schedule, then the report.
    All(AllOptions),
}

pub(crate) fn run(instrument: Bench) -> anyhow::Result<ExitCode> {
    match instrument {
        Bench::Rpc(options) => measured(*options, bench::rpc),
        // Its own load, like the document's client, may run until the user has seen enough.
        Bench::Pubsub(options) if options.is_one_load() => {
            let host = host(&stop_at_a_signal()?);
            Ok(counts(bench::pubsub(*options, host)?))
        }
        Bench::Pubsub(options) => measured(*options, bench::pubsub),
        Bench::Handshake(options) => match options.one_run() {
            Some((url, load)) => Ok(counts(bench::handshake_log(&options, url, load)?)),
            None => measured(*options, bench::handshake),
        },
        Bench::Echo(options) => measured(*options, bench::echo),
        Bench::Stream(options) => measured(*options, bench::stream),
        Bench::Accept(options) => measured(*options, bench::accept),
        Bench::Node(options) => measured(*options, bench::node),
        Bench::Oslo(options) => measured(*options, bench::oslo),
        Bench::Amqp(options) => measured(*options, bench::amqp),
        Bench::Hostile(options) => measured(*options, bench::hostile),
        Bench::Join(options) => measured(*options, bench::join),
        Bench::Http(options) => measured(*options, bench::http),
        Bench::Fabric(options) => measured(*options, bench::fabric),
        Bench::Footprint(options) => measured(*options, bench::footprint),
        Bench::All(options) => measured(options, |options, host| bench::all(&options, &host.stop)),
    }
}

/// Runs an instrument that Ctrl-C ends early; it tells what it has found.
pub(crate) fn measured<O>(
    options: O,
    instrument: impl FnOnce(O, Host) -> Result<bool, BenchError>,
) -> anyhow::Result<ExitCode> {
    let stop = stop_at_a_signal()?;
    let is_valid = instrument(options, host(&stop))?;
    Ok(match stop.is_wished() {
        true => ExitCode::from(INTERRUPTED),
        false => counts(is_valid),
    })
}

/// The first signal ends a run in good order, a second one at once.
fn stop_at_a_signal() -> anyhow::Result<Stop> {
    let stop = Stop::default();
    let heard = stop.clone();
    end_in_good_order(move |name| {
        complain!("crosstie: {name}: ending with what was found until now");
        heard.wish();
    })?;
    Ok(stop)
}

fn host(stop: &Stop) -> Host {
    Host {
        build: build(),
        stop: stop.clone(),
    }
}

/// A script must notice a run in which something was lost or went wrong without reading the table. A
/// figure that only does not count, as on a busy machine, is marked there.
fn counts(is_valid: bool) -> ExitCode {
    match is_valid {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

/// What stands in every results file about this program.
pub(crate) fn build() -> Build {
    Build {
        version: crosstie_terminal::VERSION.to_owned(),
        commit: crosstie_terminal::COMMIT.to_owned(),
    }
}
