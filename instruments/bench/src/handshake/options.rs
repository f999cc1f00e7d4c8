//! The options of `bench handshake`: wsperf's run against any server, our testee beside floor and peers, or the source
//! document's scaling table.

use std::path::PathBuf;

use super::run::RunOptions;
use super::servers::ServersOptions;
use crate::subject::Url;

/// With wsperf's five arguments: make one run against any WebSocket server, and print its log in wsperf's form
/// (`crosstie analyze` sums it up). Without: our testee, the smallest possible server, and peers take turns. With
/// --scaling: print the source document's table.
///
/// Each connection is a TCP connect, an opening handshake, a closing handshake begun by the client, and the server's
/// TCP close.
#[derive(Clone, Debug, clap::Args)]
pub struct HandshakeOptions {
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
    /// Low mark: with fewer handshakes in flight, more are launched…
    #[arg(value_name = "LOW")]
    low: Option<usize>,
    /// High mark: …until this many are in flight.
    #[arg(value_name = "HIGH")]
    high: Option<usize>,
    /// Write the log to this file instead of standard output.
    #[arg(short, long, value_name = "FILE", requires = "server")]
    pub(super) output: Option<PathBuf>,
    /// Seconds that a server may take for one step of a connection.
    #[arg(long = "timeout", default_value_t = 5.0, value_name = "SECONDS")]
    pub(super) timeout_s: f64,
    /// Numbers of workers of the source document's scaling table, as in 1,2,4.
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "N,…",
        conflicts_with_all = [
            "server", "placements", "url", "pids", "peers", "outstanding", "seconds", "warm_up"
        ]
    )]
    pub(super) scaling: Vec<usize>,
    /// Connections of each run of the scaling table.
    #[arg(
        long,
        default_value_t = 200_000,
        value_name = "N",
        requires = "scaling"
    )]
    pub(super) scaling_connections: u64,
    /// Maximum handshakes in flight in a comparison; the minimum is half of it.
    #[arg(
        long,
        default_value_t = 200,
        alias = "in-flight",
        value_name = "N",
        conflicts_with = "server"
    )]
    pub(super) outstanding: usize,
    #[command(flatten)]
    pub(super) servers: ServersOptions,
}

impl HandshakeOptions {
    /// The single run against a server, if wsperf's arguments are given.
    pub fn one_run(&self) -> Option<(&Url, RunOptions)> {
        let run = RunOptions {
            threads: self.threads?,
            connections: self.connections?,
            low: self.low?,
            high: self.high?,
            seconds_max: None,
            timeout_s: self.timeout_s,
        };
        Some((self.server.as_ref()?, run))
    }
}
