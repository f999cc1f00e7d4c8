//! `crosstie bench rpc`.

use std::process::ExitCode;

use crosstie_bench::{Case, Peer, RpcOptions, Url, rpc};
use crosstie_wamp::Serializer;

use super::common::{AsUsual, CommonArguments, Server, SubjectArguments};
use super::network::NetworkArguments;
use super::stop::{ended, stop_at_a_signal};

/// Starts a router, and callers and callees as processes of their own.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// SOCKET-TRANSPORT-SERIALIZER, as in uds-rawsocket-msgpack or tcp-websocket-json (the
    /// default: these two); may be repeated.
    #[arg(long = "case", value_name = "CASE")]
    cases: Vec<Case>,
    /// Calls between two lines of the document's form.
    #[arg(long, alias = "batch", default_value_t = 1000, value_name = "N")]
    calls_per_line: u64,
    /// Calls that each caller keeps in flight.
    #[arg(long, default_value_t = 1, value_name = "N")]
    outstanding: usize,
    /// Pairs of caller and callee.
    #[arg(long, default_value_t = 1, value_name = "N")]
    pairs: usize,
    /// Bytes of text in each call, beside its number.
    #[arg(long, default_value_t = 0, value_name = "BYTES")]
    payload: usize,
    #[command(flatten)]
    router: SubjectArguments<Router>,
    #[arg(long, default_value = "realm1")]
    realm: String,
    /// json, msgpack or cbor, in place of the one that a case or URL would use.
    #[arg(long, value_parser = serializer)]
    serializer: Option<Serializer>,
    /// crossbar: start, measure and stop a Crossbar.io found on PATH; may be repeated.
    #[arg(long = "peer", value_name = "PEER")]
    peers: Vec<Peer>,
    /// Start the router with its busy-poll option.
    #[arg(long)]
    spin: bool,
    /// Threads of the router that is started.
    #[arg(long, default_value_t = 1, value_name = "N")]
    router_threads: usize,
    #[command(flatten)]
    common: CommonArguments<AsUsual>,
    #[command(flatten)]
    network: NetworkArguments,
}

/// A WAMP router.
pub(super) type Router = Url;

impl Server for Router {
    const WHAT: &'static str = "router instead of one that is started: ws://…, rs://…, \
                                ws+unix://…, rs+unix://…";
}

pub(crate) fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let stop = stop_at_a_signal()?;
    let SubjectArguments { url, pids } = arguments.router;
    let network = arguments.network.options();
    let options = RpcOptions {
        common: arguments.common.options(pids, network, &stop)?,
        cases: arguments.cases,
        batch: arguments.calls_per_line,
        outstanding: arguments.outstanding,
        pairs: arguments.pairs,
        payload_bytes: arguments.payload,
        url,
        realm: arguments.realm,
        serializer: arguments.serializer,
        peers: arguments.peers,
        spin: arguments.spin,
        router_threads: arguments.router_threads,
    };
    Ok(ended(&stop, rpc(options)?.is_valid()))
}

pub(super) fn serializer(name: &str) -> Result<Serializer, String> {
    Serializer::from_name(name).ok_or_else(|| "expected json, msgpack or cbor".to_owned())
}
