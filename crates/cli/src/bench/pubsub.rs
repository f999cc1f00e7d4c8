//! `crosstie bench pubsub`.

use std::process::ExitCode;
use std::time::Duration;

use crosstie_bench::{Case, Peer, PubSubOptions, Work, pubsub};
use crosstie_wamp::Serializer;

use super::common::{CommonArguments, SubjectArguments, Usual};
use super::counts;
use super::network::NetworkArguments;
use super::rpc::{Router, serializer};
use super::stop::{ended, stop_at_a_signal};

/// Starts a router, subscribers and a publisher, and the floor of a fan-out beside them.
///
/// One line a second: sent_last, recv_last, sent_total, recv_total, average latency in ms.
/// Ctrl-C ends the run; the summary is printed all the same.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    router: SubjectArguments<Router>,
    /// Subscribers.
    #[arg(short, long, default_value_t = 10, value_name = "N")]
    clients: usize,
    /// Batches per second.
    #[arg(short, long, default_value_t = 25.0, value_name = "HZ")]
    rate: f64,
    /// Publications in a batch.
    #[arg(short, long, default_value_t = 1, value_name = "N")]
    batch: u64,
    /// Bytes of text in each publication, beside its number.
    #[arg(short, long, default_value_t = 32, value_name = "BYTES")]
    payload: usize,
    /// New connections per second.
    #[arg(short, long, default_value_t = 1000.0, value_name = "HZ")]
    uprate: f64,
    /// Where to publish [default: a topic of this run's own].
    #[arg(short, long)]
    topic: Option<String>,
    /// Ask for an acknowledgement of each publication, and check that it comes.
    #[arg(long)]
    acknowledge: bool,
    /// The source document's results, 1 to 27, separated by commas, or all: its figures, the
    /// floor and the router side by side.
    #[arg(
        long,
        value_name = "RESULTS",
        value_parser = results,
        conflicts_with_all = ["clients", "rate", "batch", "payload"]
    )]
    profile: Option<Results>,
    /// Search the highest rate at which nothing is lost and the latency stays within --p99.
    #[arg(long, conflicts_with_all = ["profile", "saturate", "rate"])]
    max: bool,
    /// The bound of --max, as in 50ms.
    #[arg(long, default_value = "50ms", value_parser = duration, requires = "max")]
    p99: Duration,
    /// Publish without a clock: so many publications under way as --outstanding says.
    #[arg(long, conflicts_with_all = ["profile", "rate", "batch"])]
    saturate: bool,
    /// Publications under way with --saturate.
    #[arg(long, default_value_t = 8, value_name = "N", requires = "saturate")]
    outstanding: u64,
    /// SOCKET-TRANSPORT-SERIALIZER, as in uds-rawsocket-msgpack or tcp-websocket-json-batched; may
    /// be repeated [default: tcp-websocket-json, as in the source document].
    #[arg(long = "case", value_name = "CASE")]
    cases: Vec<Case>,
    /// Processes that share the subscribers [default: one per core of the clients].
    #[arg(long, value_name = "N")]
    processes: Option<usize>,
    /// Leave out the floor.
    #[arg(long)]
    no_floor: bool,
    #[arg(long, default_value = "realm1")]
    realm: String,
    /// json, msgpack or cbor, in place of the one that a case or URL would use.
    #[arg(long, value_parser = serializer)]
    serializer: Option<Serializer>,
    /// crossbar: start, measure and stop a Crossbar.io found on PATH; may be repeated.
    #[arg(long = "peer", value_name = "PEER")]
    peers: Vec<Peer>,
    /// Threads of the router that is started.
    #[arg(long, default_value_t = 1, value_name = "N")]
    router_threads: usize,
    #[command(flatten)]
    common: CommonArguments<OfLoads>,
    #[command(flatten)]
    network: NetworkArguments,
}

struct OfLoads;

impl Usual for OfLoads {
    const PLACEMENTS: &'static str = "split where there are two cores";
    const RUNS: Option<&'static str> = None;
    const RUNS_WHERE: &'static str = " [default: 1 of one load, 5 of what is compared]";
    const SECONDS: Option<&'static str> = None;
    const SECONDS_WHERE: &'static str = " [default: 10 of one load, 2 of what is compared]";
}

/// Numbers of the document's results.
#[derive(Clone)]
struct Results(Vec<usize>);

pub(crate) fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let work = match (&arguments.profile, arguments.max, arguments.saturate) {
        (Some(Results(results)), _, _) => Work::Profiles(results.clone()),
        (None, true, _) => Work::Max { p99: arguments.p99 },
        (None, false, true) => Work::Saturate {
            outstanding: arguments.outstanding,
        },
        (None, false, false) => Work::Load,
    };
    let stop = stop_at_a_signal()?;
    // Its own load, like the document's client, may run until the user has seen enough.
    let is_one_load = work == Work::Load;
    let SubjectArguments { url, pids } = arguments.router;
    let network = arguments.network.options();
    let (runs, seconds) = work.usual();
    let mut common = arguments.common;
    common.rounds.runs.get_or_insert(runs);
    common.rounds.seconds.get_or_insert(seconds);
    let report = pubsub(PubSubOptions {
        common: common.options(pids, network, &stop)?,
        work,
        cases: arguments.cases,
        clients: arguments.clients,
        batch: arguments.batch,
        rate_hz: arguments.rate,
        payload_bytes: arguments.payload,
        uprate: arguments.uprate,
        topic: arguments.topic,
        acknowledge: arguments.acknowledge,
        processes: arguments.processes,
        floor: !arguments.no_floor,
        url,
        realm: arguments.realm,
        serializer: arguments.serializer,
        peers: arguments.peers,
        router_threads: arguments.router_threads,
    })?;
    Ok(match is_one_load {
        true => counts(report.is_valid()),
        false => ended(&stop, report.is_valid()),
    })
}

fn results(text: &str) -> Result<Results, String> {
    if text == "all" {
        return Ok(Results((1..=27).collect()));
    }
    let numbers: Result<Vec<usize>, _> = text.split(',').map(str::parse).collect();
    match numbers {
        Ok(numbers) if numbers.iter().all(|number| (1..=27).contains(number)) => {
            Ok(Results(numbers))
        }
        _ => Err("expected numbers from 1 to 27, separated by commas, or all".to_owned()),
    }
}

fn duration(text: &str) -> Result<Duration, String> {
    let units = [("us", 1e-6), ("µs", 1e-6), ("ms", 1e-3), ("s", 1.0)];
    units
        .iter()
        .find_map(|(unit, seconds)| {
            let number: f64 = text.strip_suffix(unit)?.parse().ok()?;
            Duration::try_from_secs_f64(number * seconds).ok()
        })
        .ok_or_else(|| "expected a number and its unit, as in 50ms, 800us or 1s".to_owned())
}
