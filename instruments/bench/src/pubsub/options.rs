//! The options of `bench pubsub`, and their valid combinations.

use std::path::PathBuf;
use std::time::Duration;

use crosstie_wamp::Serializer;
use crosstie_wan::units;

use super::profiles::PROFILES;
use super::spread;
use crate::error::BenchError;
use crate::frame::{Common, CommonOptions, Host, Usual, require, require_within};
use crate::network::NetworkOptions;
use crate::subject::{Case, RoutersOptions, Socket, Transport};
use crate::wamp::holder::sessions_max;

/// Start a router, subscribers and a publisher, and the floor of a fan-out beside them.
///
/// One line a second: sent_last, recv_last, sent_total, recv_total, average latency in ms. Ctrl-C ends the run; the
/// summary is printed all the same.
#[derive(Clone, Debug, clap::Args)]
pub struct PubSubOptions {
    /// The defaults of rounds and seconds are [`Work::usual`]'s.
    #[arg(skip)]
    pub(super) common: Common,
    #[arg(skip)]
    pub(super) work: Work,
    #[command(flatten)]
    pub(super) routers: RoutersOptions,
    /// Subscribers.
    #[arg(short, long, default_value_t = 10, value_name = "N")]
    pub(super) clients: usize,
    /// Batches per second.
    #[arg(short, long = "rate", default_value_t = 25.0, value_name = "HZ")]
    pub(super) rate_hz: f64,
    /// Publications in a batch.
    #[arg(short, long, default_value_t = 1, value_name = "N")]
    pub(super) batch: u64,
    /// Bytes of text in each publication, besides its number.
    #[arg(short, long = "payload", default_value_t = 32, value_name = "BYTES")]
    pub(super) payload_bytes: usize,
    /// New connections per second.
    #[arg(short, long, default_value_t = 1000.0, value_name = "HZ")]
    pub(super) uprate: f64,
    /// Topic to publish to [default: a topic of this run's own].
    #[arg(short, long)]
    pub(super) topic: Option<String>,
    /// Request an acknowledgement of each publication, and check its arrival.
    #[arg(long)]
    pub(super) acknowledge: bool,
    /// The source document's results, 1 to 27, separated by commas, or all: its figures, the floor and the router side
    /// by side.
    #[arg(
        long,
        value_name = "RESULTS",
        value_parser = results,
        conflicts_with_all = ["clients", "rate_hz", "batch", "payload_bytes"]
    )]
    profile: Option<Results>,
    /// Search for the highest rate without losses and with the latency within --p99.
    #[arg(long, conflicts_with_all = ["profile", "saturate", "rate_hz"])]
    max: bool,
    /// Bound of --max, as in 50ms.
    #[arg(long, default_value = "50ms", value_parser = units::duration, requires = "max")]
    p99: Duration,
    /// Publish without a clock, with --outstanding publications in flight.
    #[arg(long, conflicts_with_all = ["profile", "rate_hz", "batch"])]
    saturate: bool,
    /// Publications in flight with --saturate.
    #[arg(long, default_value_t = 8, value_name = "N", requires = "saturate")]
    outstanding: u64,
    /// SOCKET-TRANSPORT-SERIALIZER, as in uds-rawsocket-msgpack or tcp-websocket-json-batched; may be repeated. With
    /// -deflated at its end messages are compressed, with -deflated-apart each on its own [default: tcp-websocket-json,
    /// as in the source document].
    #[arg(long = "case", value_name = "CASE")]
    pub(super) cases: Vec<Case>,
    /// Processes that share the subscribers [default: one per core of the clients].
    #[arg(long, value_name = "N")]
    pub(super) processes: Option<usize>,
    /// Numbers of nodes, as in 2,3, to measure beside the router. The nodes share its realm; subscribers are spread
    /// over them in turn, and the publisher is on the first.
    #[arg(long, value_name = "N", value_delimiter = ',', conflicts_with = "url")]
    pub(super) nodes: Vec<usize>,
    /// NATS server program for these nodes [default: nats-server on PATH].
    #[arg(long, value_name = "FILE", requires = "nodes")]
    pub(super) nats_server: Option<PathBuf>,
    /// Omit the floor.
    #[arg(long)]
    pub(super) no_floor: bool,
    #[command(flatten)]
    usual: CommonOptions<OfLoads>,
    #[command(flatten)]
    network: NetworkOptions,
}

#[derive(Clone, Debug)]
struct OfLoads;

impl Usual for OfLoads {
    const PLACEMENTS: &'static str = "split with two cores";
    const RUNS: Option<&'static str> = None;
    const RUNS_WHERE: &'static str = " [default: 1 for one load, 5 for comparisons]";
    const SECONDS: Option<&'static str> = None;
    const SECONDS_WHERE: &'static str = " [default: 10 for one load, 2 for comparisons]";
}

/// Numbers of the document's results.
#[derive(Clone, Debug)]
struct Results(Vec<usize>);

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

/// The work to do.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) enum Work {
    /// The load client: one load.
    #[default]
    Load,
    /// The same without a clock: so many publications in flight.
    Saturate { outstanding: u64 },
    /// Results of the document, by number.
    Profiles(Vec<usize>),
    /// Search the highest rate within a latency bound.
    Max { p99: Duration },
}

impl Work {
    /// Rounds, and measured seconds of each.
    pub(super) fn usual(&self) -> (usize, f64) {
        match self {
            Self::Load => (1, 10.0),
            Self::Saturate { .. } | Self::Profiles(_) | Self::Max { .. } => (5, 2.0),
        }
    }

    /// Whether the router determines the rate.
    pub(super) fn is_free(&self) -> bool {
        matches!(self, Self::Saturate { .. } | Self::Max { .. })
    }
}

/// The document measures WebSocket on TCP with JSON.
const CASE_OF_THE_DOCUMENT: Case = Case {
    socket: Socket::Tcp,
    transport: Transport::WebSocket,
    serializer: Serializer::Json,
};

impl PubSubOptions {
    pub(super) fn on(mut self, host: Host) -> Result<Self, BenchError> {
        self.work = match (&self.profile, self.max, self.saturate) {
            (Some(Results(results)), _, _) => Work::Profiles(results.clone()),
            (None, true, _) => Work::Max { p99: self.p99 },
            (None, false, true) => Work::Saturate {
                outstanding: self.outstanding,
            },
            (None, false, false) => Work::Load,
        };
        let (runs, seconds) = self.work.usual();
        let rounds = &mut self.usual.rounds;
        let seconds = *rounds.seconds.get_or_insert(seconds);
        rounds.runs.get_or_insert(runs);
        self.common = self
            .usual
            .common(host, &self.routers.server, &self.network)?;
        self.common.warm_up_seconds = self.common.warm_up_seconds.min(seconds);
        self.check()?;
        Ok(self)
    }

    /// Whether it is one load: like the document's client, it may run until the user ends it.
    pub fn is_one_load(&self) -> bool {
        self.profile.is_none() && !self.max && !self.saturate
    }

    /// Refuses invalid options, and loads that would overwhelm the machine.
    fn check(&self) -> Result<(), BenchError> {
        require_within("--clients", &self.clients, 1..=1_000_000)?;
        require_within("--batch", &self.batch, 1..=100_000)?;
        require(
            (0.001..=1_000_000.0).contains(&self.rate_hz),
            "--rate is 0.001 to 1,000,000; for the highest possible one use --saturate",
        )?;
        require_within("--uprate", &self.uprate, 0.1..=1_000_000.0)?;
        require(self.payload_bytes <= 8 << 20, "--payload is at most 8 MiB")?;
        let processes = self.processes.unwrap_or(1);
        require_within("--processes", &processes, 1..=64)?;
        require(
            self.nodes.iter().all(|nodes| (2..=16).contains(nodes)),
            "--nodes are 2 to 16",
        )?;
        require(
            self.nodes.is_empty() || !self.common.network.netns,
            "--nodes and their server of NATS are not put into namespaces",
        )?;
        match &self.work {
            Work::Load => {}
            Work::Saturate { outstanding } => require(
                (1..=65_536).contains(outstanding),
                "--outstanding is 1 to 65,536",
            )?,
            Work::Profiles(results) => require(
                results
                    .iter()
                    .all(|result| (1..=PROFILES.len()).contains(result)),
                "--profile is a number from 1 to 27, or all",
            )?,
            Work::Max { p99 } => require(
                (Duration::from_micros(10)..=Duration::from_secs(10)).contains(p99),
                "--p99 is 10us to 10s",
            )?,
        }
        self.routers.check(&self.cases)?;
        self.check_descriptors()
    }

    /// A router, ours or the relay, is one process that holds them all.
    fn check_descriptors(&self) -> Result<(), BenchError> {
        let clients = match &self.work {
            Work::Profiles(results) => {
                let clients = |result: &usize| PROFILES.get(result - 1).map(|one| one.clients);
                results.iter().filter_map(clients).max().unwrap_or(0)
            }
            _ => self.clients,
        };
        let most = sessions_max();
        let starts_one = self.routers.server.url.is_none() || !self.no_floor;
        if starts_one && clients >= most {
            return Err(BenchError::Options(format!(
                "{clients} clients are more than one process may hold open here ({most}); raise the \
                 hard limit of open files (ulimit -Hn), or take fewer clients"
            )));
        }
        Ok(())
    }

    /// The participants besides the router and the floor.
    pub(super) fn others(&self) -> Vec<String> {
        let peers = self.routers.peers.iter().map(ToString::to_string);
        peers
            .chain(self.nodes.iter().map(|nodes| spread::name(*nodes)))
            .collect()
    }

    /// The cases to measure.
    pub(super) fn definite_cases(&self) -> Result<Vec<Case>, BenchError> {
        self.routers.cases(&self.cases, &[CASE_OF_THE_DOCUMENT])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{check_cases, usual};

    #[test]
    fn contradictory_options_are_refused() {
        #[track_caller]
        fn check(change: fn(&mut PubSubOptions), expected: Result<&str, &str>) {
            let mut options = usual::<PubSubOptions>();
            change(&mut options);
            let cases = options.check().and_then(|()| options.definite_cases());
            check_cases(cases, expected);
        }
        check(|_| {}, Ok("tcp-websocket-json"));
        check(
            |options| options.routers.serializer = Some(Serializer::Cbor),
            Ok("tcp-websocket-cbor"),
        );
        check(
            |options| options.routers.server.url = "rs+unix:///x.sock".parse().ok(),
            Ok("uds-rawsocket-msgpack"),
        );
        check(
            |options| {
                options.routers.server.url = "ws://127.0.0.1:9000".parse().ok();
                options.cases = vec!["tcp-websocket-msgpack-batched".parse().unwrap()];
            },
            Ok("tcp-websocket-msgpack-batched"),
        );
        check(
            |options| {
                options.routers.server.url = "ws://127.0.0.1:9000".parse().ok();
                options.cases = vec!["uds-rawsocket-msgpack".parse().unwrap()];
            },
            Err("not the URL's transport"),
        );
        check(|options| options.clients = 0, Err("--clients"));
        check(|options| options.rate_hz = 0.0, Err("--saturate"));
        check(
            |options| options.work = Work::Profiles(vec![1, 28]),
            Err("1 to 27"),
        );
        check(
            |options| {
                options.work = Work::Max {
                    p99: Duration::ZERO,
                }
            },
            Err("--p99"),
        );
        check(|options| options.nodes = vec![2, 1], Err("2 to 16"));
        check(|options| options.clients = 999_999, Err("ulimit -Hn"));
    }
}
