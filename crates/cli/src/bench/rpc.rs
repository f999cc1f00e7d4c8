//! `crosstie bench rpc`.

use std::path::PathBuf;
use std::process::ExitCode;

use crosstie_bench::machine::placement::Placement;
use crosstie_bench::peer::Peer;
use crosstie_bench::rpc::{RpcOptions, rpc};
use crosstie_bench::subject::case::Case;
use crosstie_bench::subject::target::Url;
use crosstie_wamp::Serializer;

use super::build;
use super::network::NetworkArguments;
use super::stop::{ended, stop_at_a_signal};

/// Starts a router, and callers and callees as processes of their own.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// SOCKET-TRANSPORT-SERIALIZER, as in uds-rawsocket-msgpack or tcp-websocket-json (the
    /// default: these two); may be repeated.
    #[arg(long = "case", value_name = "CASE")]
    cases: Vec<Case>,
    /// same-core, split or free; may be repeated [default: same-core and split].
    #[arg(long = "placement", value_name = "PLACEMENT")]
    placements: Vec<Placement>,
    /// Measured seconds of each round.
    #[arg(long, default_value_t = 1.0)]
    seconds: f64,
    /// Calls between two lines of the document's form.
    #[arg(long, default_value_t = 1000)]
    batch: u64,
    /// Calls that each caller keeps in flight.
    #[arg(long, default_value_t = 1, value_name = "N")]
    outstanding: usize,
    /// Pairs of caller and callee.
    #[arg(long, default_value_t = 1, value_name = "N")]
    pairs: usize,
    /// Bytes of text in each call, beside its number.
    #[arg(long, default_value_t = 0, value_name = "BYTES")]
    payload: usize,
    /// Rounds, in each of which floor, router and peers take turns.
    #[arg(long, default_value_t = 5)]
    runs: usize,
    /// Somebody else's router instead of one that is started: ws://…, rs://…, ws+unix://…,
    /// rs+unix://….
    #[arg(long)]
    url: Option<Url>,
    /// A process of that router, for its processor time and memory; may be repeated.
    #[arg(long = "router-pid", value_name = "PID", requires = "url")]
    router_pids: Vec<u32>,
    #[arg(long, default_value = "realm1")]
    realm: String,
    /// json, msgpack or cbor, in place of the one that a case or URL would use.
    #[arg(long, value_parser = serializer)]
    serializer: Option<Serializer>,
    /// crossbar: start, measure and stop a Crossbar.io found on PATH; may be repeated.
    #[arg(long = "peer", value_name = "PEER")]
    peers: Vec<Peer>,
    /// Write every round to this file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Start the router with its busy-poll option.
    #[arg(long)]
    spin: bool,
    /// Threads of the router that is started.
    #[arg(long, default_value_t = 1, value_name = "N")]
    router_threads: usize,
    #[command(flatten)]
    network: NetworkArguments,
}

pub(crate) fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    super::check_results_file(arguments.json.as_deref())?;
    let stop = stop_at_a_signal()?;
    let options = RpcOptions {
        stop: stop.clone(),
        ..arguments.into()
    };
    Ok(ended(&stop, rpc(options)?.is_valid()))
}

impl From<Arguments> for RpcOptions {
    fn from(arguments: Arguments) -> Self {
        Self {
            build: build(),
            cases: arguments.cases,
            placements: arguments.placements,
            seconds: arguments.seconds,
            batch: arguments.batch,
            outstanding: arguments.outstanding,
            pairs: arguments.pairs,
            payload_bytes: arguments.payload,
            runs: arguments.runs,
            url: arguments.url,
            router_pids: arguments.router_pids,
            realm: arguments.realm,
            serializer: arguments.serializer,
            peers: arguments.peers,
            json: arguments.json,
            spin: arguments.spin,
            router_threads: arguments.router_threads,
            network: arguments.network.options(),
            ..Self::default()
        }
    }
}

fn serializer(name: &str) -> Result<Serializer, String> {
    Serializer::from_name(name).ok_or_else(|| "expected json, msgpack or cbor".to_owned())
}
