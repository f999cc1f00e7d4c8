//! `crosstie bench oslo`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::ValueEnum;
use crosstie_bench::broker::Broker;
use crosstie_bench::link::units;
use crosstie_bench::machine::placement::Placement;
use crosstie_bench::oslo::case::Operation;
use crosstie_bench::oslo::topology::Topology;
use crosstie_bench::oslo::{OsloOptions, Part, oslo};
use crosstie_bench::peer::rabbitmq::BrokerPeer;

use super::build;
use super::stop::{ended, stop_at_a_signal};

/// Starts a broker and the floor's, and clients and servers as processes of their own. Without a
/// selection it measures rates, then delays: about a minute, and with --python a quarter of an hour.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// call or cast; may be repeated [default: both].
    #[arg(long = "operation", value_name = "OPERATION")]
    operations: Vec<Operation>,
    /// same-core, split or free; may be repeated [default: same-core and split].
    #[arg(long = "placement", value_name = "PLACEMENT")]
    placements: Vec<Placement>,
    /// together, remote-client or remote-server; may be repeated [default: all].
    #[arg(long = "topology", value_name = "TOPOLOGY")]
    topologies: Vec<Topology>,
    /// What a link adds to the round trip, on the way to the broker.
    #[arg(
        long,
        value_name = "TIME,…",
        value_delimiter = ',',
        default_value = "0ms,10ms,50ms,100ms",
        value_parser = units::duration
    )]
    delays: Vec<Duration>,
    /// Measure only the rates, or only the delays.
    #[arg(long)]
    only: Option<OnlyPart>,
    /// Measured seconds of each round of the rates.
    #[arg(short = 'l', long, default_value_t = 1.0)]
    seconds: f64,
    /// Unmeasured seconds before it.
    #[arg(long, default_value_t = 0.3, value_name = "SECONDS")]
    warm_up: f64,
    /// Operations of each run with a delay.
    #[arg(long, default_value_t = 100, value_name = "N")]
    repeat: u64,
    /// Rounds, in each of which all brokers take turns.
    #[arg(long, default_value_t = 5)]
    runs: usize,
    /// An interpreter with oslo.messaging, whose client and server are then measured too.
    #[arg(long, value_name = "PROGRAM")]
    python: Option<PathBuf>,
    /// Leave the native client and server out.
    #[arg(long, requires = "python")]
    only_python: bool,
    /// Somebody else's broker instead of ours: rabbit://USER:PASSWORD@HOST:PORT/VHOST.
    #[arg(long, value_name = "URL")]
    url: Option<Broker>,
    /// A process of that broker, for its processor time and placement; may be repeated.
    #[arg(long = "broker-pid", value_name = "PID", requires = "url")]
    broker_pids: Vec<u32>,
    /// rabbitmq: start Debian's server and measure it in the same rounds.
    #[arg(long = "peer", value_name = "PEER")]
    peers: Vec<BrokerPeer>,
    /// Write every round to this file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum OnlyPart {
    Rates,
    Delays,
}

pub(crate) fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    super::check_results_file(arguments.json.as_deref())?;
    let stop = stop_at_a_signal()?;
    let options = OsloOptions {
        build: build(),
        executable: None,
        operations: arguments.operations,
        placements: arguments.placements,
        topologies: arguments.topologies,
        delays: arguments.delays,
        part: arguments.only.map(|only| match only {
            OnlyPart::Rates => Part::Rates,
            OnlyPart::Delays => Part::Delays,
        }),
        seconds: arguments.seconds,
        warm_up_seconds: arguments.warm_up,
        repeat: arguments.repeat,
        runs: arguments.runs,
        python: arguments.python,
        only_python: arguments.only_python,
        url: arguments.url,
        broker_pids: arguments.broker_pids,
        peers: arguments.peers,
        json: arguments.json,
        stop: stop.clone(),
    };
    Ok(ended(&stop, oslo(options)?.is_valid()))
}
