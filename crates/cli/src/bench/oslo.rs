//! `crosstie bench oslo`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::ValueEnum;
use crosstie_bench::{
    Broker, BrokerPeer, NetworkOptions, Operation, OsloOptions, Part, Topology, oslo,
};
use crosstie_link::units;

use super::common::{AsUsual, CommonArguments, SubjectArguments};
use super::stop::{ended, stop_at_a_signal};

/// Starts a broker and the floor's, and clients and servers as processes of their own. Without a
/// selection it measures rates, then delays: about a minute, and with --python a quarter of an hour.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// call or cast; may be repeated [default: both].
    #[arg(long = "operation", value_name = "OPERATION")]
    operations: Vec<Operation>,
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
    /// Operations of each run with a delay.
    #[arg(long, default_value_t = 100, value_name = "N")]
    repeat: u64,
    /// An interpreter with oslo.messaging, whose client and server are then measured too.
    #[arg(long, value_name = "PROGRAM")]
    python: Option<PathBuf>,
    /// Leave the native client and server out.
    #[arg(long, requires = "python")]
    only_python: bool,
    #[command(flatten)]
    broker: SubjectArguments<Broker>,
    /// rabbitmq: start Debian's server and measure it in the same rounds.
    #[arg(long = "peer", value_name = "PEER")]
    peers: Vec<BrokerPeer>,
    #[command(flatten)]
    common: CommonArguments<AsUsual>,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum OnlyPart {
    Rates,
    Delays,
}

pub(crate) fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let stop = stop_at_a_signal()?;
    let SubjectArguments { url, pids } = arguments.broker;
    let network = NetworkOptions::default();
    let options = OsloOptions {
        common: arguments.common.options(pids, network, &stop)?,
        operations: arguments.operations,
        topologies: arguments.topologies,
        delays: arguments.delays,
        part: arguments.only.map(|only| match only {
            OnlyPart::Rates => Part::Rates,
            OnlyPart::Delays => Part::Delays,
        }),
        repeat: arguments.repeat,
        python: arguments.python,
        only_python: arguments.only_python,
        url,
        peers: arguments.peers,
    };
    Ok(ended(&stop, oslo(options)?.is_valid()))
}
