//! `crosstie bench amqp`.

use std::path::PathBuf;
use std::process::ExitCode;

use crosstie_bench::amqp::case::Case;
use crosstie_bench::amqp::{AmqpOptions, amqp};
use crosstie_bench::broker::Broker;
use crosstie_bench::machine::placement::Placement;
use crosstie_bench::peer::rabbitmq::BrokerPeer;

use super::build;
use super::network::NetworkArguments;
use super::stop::{ended, stop_at_a_signal};

/// Starts a broker and the floor's, and a driver as a process of its own.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// transient, priorities, durable, transactions, paced or durable-kept; may be repeated
    /// [default: all].
    #[arg(long = "case", value_name = "CASE")]
    cases: Vec<Case>,
    /// same-core, split or free; may be repeated [default: same-core and split].
    #[arg(long = "placement", value_name = "PLACEMENT")]
    placements: Vec<Placement>,
    /// Measured seconds of each round.
    #[arg(short = 'l', long, default_value_t = 1.0)]
    seconds: f64,
    /// Unmeasured seconds before it.
    #[arg(long, default_value_t = 0.3, value_name = "SECONDS")]
    warm_up: f64,
    /// Bytes of each body.
    #[arg(short, long, default_value_t = 100, value_name = "BYTES")]
    payload: usize,
    /// Messages that are published and not yet consumed, at most.
    #[arg(long, default_value_t = 1000, value_name = "N")]
    in_flight: u64,
    /// Durable messages between two waits for confirms.
    #[arg(long, default_value_t = 100, value_name = "N")]
    window: u64,
    /// Of durable messages, those that a consumer has not yet acknowledged; 0 sets no bound.
    #[arg(long, default_value_t = 200, value_name = "N")]
    prefetch: u16,
    /// Messages a second of the case `paced`.
    #[arg(long, default_value_t = 1000, value_name = "N")]
    rate: u64,
    /// They publish to one queue, on a connection each.
    #[arg(long, default_value_t = 1, value_name = "N")]
    producers: usize,
    /// They share one queue.
    #[arg(long, default_value_t = 1, value_name = "N")]
    consumers: usize,
    /// Rounds, in each of which all brokers take turns.
    #[arg(long, default_value_t = 5)]
    runs: usize,
    /// Somebody else's broker instead of ours: rabbit://USER:PASSWORD@HOST:PORT/VHOST.
    #[arg(long, value_name = "URL")]
    url: Option<Broker>,
    /// A process of that broker, for its processor time and placement; may be repeated.
    #[arg(long = "broker-pid", value_name = "PID", requires = "url")]
    broker_pids: Vec<u32>,
    /// rabbitmq: start Debian's server and measure it in the same rounds.
    #[arg(long = "peer", value_name = "PEER")]
    peers: Vec<BrokerPeer>,
    #[command(flatten)]
    network: NetworkArguments,
    /// Write every round to this file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

pub(crate) fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    super::check_results_file(arguments.json.as_deref())?;
    let stop = stop_at_a_signal()?;
    let options = AmqpOptions {
        build: build(),
        executable: None,
        cases: arguments.cases,
        placements: arguments.placements,
        seconds: arguments.seconds,
        warm_up_seconds: arguments.warm_up,
        payload_bytes: arguments.payload,
        in_flight: arguments.in_flight,
        window: arguments.window,
        prefetch: arguments.prefetch,
        rate: arguments.rate,
        producers: arguments.producers,
        consumers: arguments.consumers,
        runs: arguments.runs,
        url: arguments.url,
        broker_pids: arguments.broker_pids,
        peers: arguments.peers,
        network: arguments.network.options(),
        json: arguments.json,
        stop: stop.clone(),
    };
    Ok(ended(&stop, amqp(options)?.is_valid()))
}
