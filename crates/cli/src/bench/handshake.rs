//! `crosstie bench handshake`: wsperf's run against any server, our testee beside floor and peers,
//! or the source document's scaling table.

use std::path::PathBuf;
use std::process::ExitCode;

use crosstie_bench::{
    AgainstOptions, Common, CompareOptions, EchoPeer, RunOptions, ScalingOptions, ServersOptions,
    Stop, Url, against, compare, scaling,
};

use super::common::{CommonArguments, SubjectArguments, Usual};
use super::counts;
use super::network::NetworkArguments;
use super::stop::{ended, stop_at_a_signal};

/// With wsperf's five arguments: one run against any WebSocket server, its log on standard output
/// in wsperf's form (`crosstie analyze` sums it up). Without: our testee, the smallest server that
/// can answer, and peers take turns. With --scaling: the source document's table.
///
/// Each connection is a TCP connect, an opening handshake, a closing handshake begun by the
/// client, and the server's TCP close.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// ws://HOST:PORT of any WebSocket server.
    #[arg(
        value_name = "URL",
        requires_all = ["threads", "connections", "low", "high"],
        conflicts_with_all = [
            "placements", "runs", "seconds", "warm_up", "url", "pids", "peers", "json", "link",
            "netns"
        ]
    )]
    server: Option<Url>,
    /// Driver threads, which divide connections and marks among them.
    #[arg(value_name = "THREADS")]
    threads: Option<usize>,
    /// Connections over the whole run.
    #[arg(value_name = "CONNECTIONS")]
    connections: Option<u64>,
    /// With fewer handshakes in flight than this, more are launched…
    #[arg(value_name = "LOW")]
    low: Option<usize>,
    /// …until there are this many.
    #[arg(value_name = "HIGH")]
    high: Option<usize>,
    /// Write the log to this file instead of standard output.
    #[arg(short, long, value_name = "FILE", requires = "server")]
    output: Option<PathBuf>,
    /// Seconds that a server may take for one step of a connection.
    #[arg(long, default_value_t = 5.0, value_name = "SECONDS")]
    timeout: f64,
    /// Numbers of workers of the source document's scaling table, as in 1,2,4.
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "N,…",
        conflicts_with_all = [
            "server", "placements", "url", "pids", "peers", "outstanding", "seconds", "warm_up"
        ]
    )]
    scaling: Vec<usize>,
    /// Connections of each run of the scaling table.
    #[arg(
        long,
        default_value_t = 200_000,
        value_name = "N",
        requires = "scaling"
    )]
    scaling_connections: u64,
    /// Handshakes in flight in a comparison: this many at most, half of them at least.
    #[arg(
        long,
        default_value_t = 200,
        alias = "in-flight",
        value_name = "N",
        conflicts_with = "server"
    )]
    outstanding: usize,
    #[command(flatten)]
    comparison: ComparisonArguments,
}

/// What every comparison of WebSocket servers takes.
#[derive(clap::Args)]
pub(crate) struct ComparisonArguments {
    #[command(flatten)]
    server: SubjectArguments<Url>,
    /// autobahn: start, measure and stop an echo server on Autobahn for Python.
    #[arg(long = "peer", value_name = "PEER")]
    peers: Vec<EchoPeer>,
    /// The Python that has what a peer needs [default: python3 on PATH].
    #[arg(long, value_name = "FILE", requires = "peers")]
    peer_python: Option<PathBuf>,
    #[command(flatten)]
    common: CommonArguments<OfServers>,
    #[command(flatten)]
    network: NetworkArguments,
}

struct OfServers;

impl Usual for OfServers {
    const RUNS: Option<&'static str> = None;
    const RUNS_WHERE: &'static str = " [default: 5; of a scaling table: 3]";
    const WARM_UP: Option<&'static str> = Some("0.2");
}

impl ComparisonArguments {
    pub(crate) fn options(self, stop: &Stop) -> anyhow::Result<(Common, ServersOptions)> {
        let SubjectArguments { url, pids } = self.server;
        let servers = ServersOptions {
            url,
            peers: self.peers,
            peer_python: self.peer_python,
        };
        let network = self.network.options();
        Ok((self.common.options(pids, network, stop)?, servers))
    }
}

/// wsperf's threads and marks in the source document.
const DOCUMENT: (usize, usize, usize) = (8, 1_000, 2_000);

pub(crate) fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let timeout_s = arguments.timeout;
    if let (Some(url), Some(threads), Some(connections), Some(low), Some(high)) = (
        arguments.server,
        arguments.threads,
        arguments.connections,
        arguments.low,
        arguments.high,
    ) {
        let run = RunOptions {
            threads,
            connections,
            low,
            high,
            seconds_max: None,
            timeout_s,
        };
        let output = arguments.output;
        return Ok(counts(against(&AgainstOptions { url, run, output })?));
    }
    let stop = stop_at_a_signal()?;
    let runs = arguments.comparison.common.rounds.runs;
    let (common, servers) = arguments.comparison.options(&stop)?;
    if !arguments.scaling.is_empty() {
        let (threads, low, high) = DOCUMENT;
        let options = ScalingOptions {
            build: common.build,
            executable: None,
            workers: arguments.scaling,
            run: RunOptions {
                threads,
                connections: arguments.scaling_connections,
                low,
                high,
                seconds_max: None,
                timeout_s,
            },
            warm_up: arguments.scaling_connections.div_ceil(4),
            runs: runs.unwrap_or(3),
            json: common.json,
            network: common.network,
            stop: stop.clone(),
        };
        return Ok(ended(&stop, scaling(&options)?));
    }
    let options = CompareOptions {
        common,
        servers,
        low: arguments.outstanding.div_ceil(2),
        high: arguments.outstanding,
        timeout_s,
    };
    Ok(ended(&stop, compare(options)?.is_valid()))
}
