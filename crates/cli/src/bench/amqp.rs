//! `crosstie bench amqp`.

use std::process::ExitCode;

use crosstie_bench::{AmqpOptions, Broker, BrokerPeer, QueueCase, amqp};

use super::common::{AsUsual, CommonArguments, Server, SubjectArguments};
use super::network::NetworkArguments;
use super::stop::{ended, stop_at_a_signal};

/// Starts a broker and the floor's, and a driver as a process of its own.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// transient, priorities, durable, transactions, paced or durable-kept; may be repeated
    /// [default: all].
    #[arg(long = "case", value_name = "CASE")]
    cases: Vec<QueueCase>,
    /// Bytes of each body.
    #[arg(short, long, default_value_t = 100, value_name = "BYTES")]
    payload: usize,
    /// Messages that are published and not yet consumed, at most.
    #[arg(long, alias = "in-flight", default_value_t = 1000, value_name = "N")]
    outstanding: u64,
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
    #[command(flatten)]
    broker: SubjectArguments<Broker>,
    /// rabbitmq: start Debian's server and measure it in the same rounds.
    #[arg(long = "peer", value_name = "PEER")]
    peers: Vec<BrokerPeer>,
    #[command(flatten)]
    common: CommonArguments<AsUsual>,
    #[command(flatten)]
    network: NetworkArguments,
}

impl Server for Broker {
    const WHAT: &'static str = "broker instead of ours: rabbit://USER:PASSWORD@HOST:PORT/VHOST";
}

pub(crate) fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let stop = stop_at_a_signal()?;
    let SubjectArguments { url, pids } = arguments.broker;
    let network = arguments.network.options();
    let options = AmqpOptions {
        common: arguments.common.options(pids, network, &stop)?,
        cases: arguments.cases,
        payload_bytes: arguments.payload,
        outstanding: arguments.outstanding,
        window: arguments.window,
        prefetch: arguments.prefetch,
        rate: arguments.rate,
        producers: arguments.producers,
        consumers: arguments.consumers,
        url,
        peers: arguments.peers,
    };
    Ok(ended(&stop, amqp(options)?.is_valid()))
}
