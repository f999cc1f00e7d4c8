//! `crosstie bench …`: the instruments. Each defines its own options; this module runs and ends them.

use std::process::ExitCode;

use clap::Subcommand;
use crosstie_bench::{
    self as bench, AcceptOptions, AllOptions, AmqpOptions, BenchError, Build, EchoOptions,
    FabricOptions, FootprintOptions, HandshakeOptions, Host, HostileOptions, HttpOptions,
    JoinOptions, MqttOptions, NodeOptions, OsloOptions, PubSubOptions, RpcOptions, Stop,
    StreamOptions,
};

use crate::signals::{INTERRUPTED, end_in_good_order};

#[derive(Subcommand)]
pub(crate) enum Bench {
    /// Measure the round trip of a call, beside the machine's floor and the source document's figures.
    Rpc(Box<RpcOptions>),
    /// Measure Publish & Subscribe under load: latency, dispatched events, the router's processor time.
    Pubsub(Box<PubSubOptions>),
    /// Measure WebSocket opening and closing handshakes, as wsperf counts them.
    Handshake(Box<HandshakeOptions>),
    /// Measure echoed WebSocket messages.
    Echo(Box<EchoOptions>),
    /// Measure a stream's transactions, throughput and connections, in netperf's terms.
    Stream(Box<StreamOptions>),
    /// Open connections in batches and hold them.
    Accept(Box<AcceptOptions>),
    /// Measure a whole node: its start, its callers' averages, the resources of each process.
    Node(Box<NodeOptions>),
    /// Measure calls and casts of oslo.messaging over an AMQP 0-9-1 broker, near and with a delay.
    Oslo(Box<OsloOptions>),
    /// Measure messages from publishers through a queue to consumers, transient and durable.
    Amqp(Box<AmqpOptions>),
    /// Measure MQTT: fan-out, fan-in, each QoS, durable sessions, connections, idle clients.
    Mqtt(Box<MqttOptions>),
    /// Measure the effect of one peer's attacks on others, with a witness beside.
    Hostile(Box<HostileOptions>),
    /// Measure sessions that join and leave, by each method of authentication.
    Join(Box<JoinOptions>),
    /// Measure HTTP requests to web services: a small file, calls, publications.
    Http(Box<HttpOptions>),
    /// Measure calls and events of a realm on two nodes, beside a realm on one node and NATS alone.
    Fabric(Box<FabricOptions>),
    /// Measure start-up time, idle memory, memory per idle session, size of the binary.
    Footprint(Box<FootprintOptions>),
    /// Run every bench on a schedule, then write the report.
    All(AllOptions),
}

pub(crate) fn run(instrument: Bench) -> anyhow::Result<ExitCode> {
    match instrument {
        Bench::Rpc(options) => measured(*options, bench::rpc),
        // Like the document's client, its own load may run until the user ends it.
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
        Bench::Mqtt(options) => measured(*options, bench::mqtt),
        Bench::Hostile(options) => measured(*options, bench::hostile),
        Bench::Join(options) => measured(*options, bench::join),
        Bench::Http(options) => measured(*options, bench::http),
        Bench::Fabric(options) => measured(*options, bench::fabric),
        Bench::Footprint(options) => measured(*options, bench::footprint),
        Bench::All(options) => measured(options, |options, host| bench::all(&options, &host.stop)),
    }
}

/// Runs an instrument that Ctrl-C ends early; its results are reported.
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

/// The first signal ends a run in order, a second one at once.
fn stop_at_a_signal() -> anyhow::Result<Stop> {
    let stop = Stop::default();
    let heard = stop.clone();
    end_in_good_order(move |name| {
        complain!("crosstie: {name}: ending with the results so far");
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

/// A script must notice a run with a loss or a fault without reading the table. A figure that only does not count, as
/// on a busy machine, is marked there.
fn counts(is_valid: bool) -> ExitCode {
    match is_valid {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

/// This program's entry in every results file.
pub(crate) fn build() -> Build {
    Build {
        version: crosstie_terminal::VERSION.to_owned(),
        commit: crosstie_terminal::COMMIT.to_owned(),
    }
}
