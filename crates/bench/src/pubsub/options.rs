//! What can be asked of `bench pubsub`, and what cannot be had together.

use std::path::PathBuf;
use std::time::Duration;

use crosstie_wamp::Serializer;

use super::profiles::PROFILES;
use crate::error::BenchError;
use crate::machine::placement::Placement;
use crate::network::NetworkOptions;
use crate::peer::Peer;
use crate::process::stop::Stop;
use crate::report::json::Build;
use crate::subject::case::{self, Case, Socket, Transport};
use crate::subject::target::Url;
use crate::wamp::holder::sessions_max;

/// Everything that can be asked of the bench.
#[derive(Clone, Debug)]
pub struct PubSubOptions {
    pub build: Build,
    /// The `crosstie` to start as router and workers; by default the one that runs.
    pub executable: Option<PathBuf>,
    pub work: Work,
    /// By default the document's.
    pub cases: Vec<Case>,
    /// By default `split`, or `same-core` where there is one core.
    pub placements: Vec<Placement>,
    pub clients: usize,
    /// Publications in a batch.
    pub batch: u64,
    /// Batches per second.
    pub rate_hz: f64,
    pub payload_bytes: usize,
    /// New connections per second.
    pub uprate: f64,
    /// By default one that nobody else uses.
    pub topic: Option<String>,
    pub acknowledge: bool,
    /// Processes that share the subscribers; by default one per core that clients may use, and as
    /// many as their descriptors need.
    pub processes: Option<usize>,
    /// By default what the work takes.
    pub seconds: Option<f64>,
    pub warm_up_seconds: f64,
    /// By default one of the load client's, five of what is compared.
    pub runs: Option<usize>,
    /// Whether the floor is measured too.
    pub floor: bool,
    /// Somebody else's router, in place of one that is started.
    pub url: Option<Url>,
    /// The processes of that router: without them its processor time and memory stay unknown,
    /// and it runs where it will.
    pub router_pids: Vec<u32>,
    pub realm: String,
    /// In place of the one that a case or URL would use.
    pub serializer: Option<Serializer>,
    pub peers: Vec<Peer>,
    pub json: Option<PathBuf>,
    pub router_threads: usize,
    pub network: NetworkOptions,
    /// Set when everything is to end with what has been found.
    pub stop: Stop,
}

/// What to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Work {
    /// The load client: one load.
    Load,
    /// The same without a clock: so many publications under way.
    Saturate { outstanding: u64 },
    /// Results of the document, by number.
    Profiles(Vec<usize>),
    /// Search the highest rate that holds a latency.
    Max { p99: Duration },
}

impl Default for PubSubOptions {
    fn default() -> Self {
        Self {
            build: Build::default(),
            executable: None,
            work: Work::Load,
            cases: Vec::new(),
            placements: Vec::new(),
            clients: 10,
            batch: 1,
            rate_hz: 25.0,
            payload_bytes: 32,
            uprate: 1_000.0,
            topic: None,
            acknowledge: false,
            processes: None,
            seconds: None,
            warm_up_seconds: 0.3,
            runs: None,
            floor: true,
            url: None,
            router_pids: Vec::new(),
            realm: crate::subject::router::REALM.to_owned(),
            serializer: None,
            peers: Vec::new(),
            json: None,
            router_threads: 1,
            network: NetworkOptions::default(),
            stop: Stop::default(),
        }
    }
}

/// The document measures WebSocket on TCP with JSON.
const CASE_OF_THE_DOCUMENT: Case = Case {
    socket: Socket::Tcp,
    transport: Transport::WebSocket,
    serializer: Serializer::Json,
};

impl PubSubOptions {
    /// Refuses what makes no sense, or would take the machine down.
    pub(super) fn check(&self) -> Result<(), BenchError> {
        let require = |held: bool, rule: &str| match held {
            true => Ok(()),
            false => Err(BenchError::Options(rule.to_owned())),
        };
        require(
            (1..=1_000_000).contains(&self.clients),
            "--clients is 1 to 1,000,000",
        )?;
        require(
            (1..=100_000).contains(&self.batch),
            "--batch is 1 to 100,000",
        )?;
        require(
            (0.001..=1_000_000.0).contains(&self.rate_hz),
            "--rate is 0.001 to 1,000,000; as fast as it goes is --saturate",
        )?;
        require(
            (0.1..=1_000_000.0).contains(&self.uprate),
            "--uprate is 0.1 to 1,000,000",
        )?;
        require(self.payload_bytes <= 8 << 20, "--payload is at most 8 MiB")?;
        require(
            (0.01..=86_400.0).contains(&self.seconds()),
            "--seconds is 0.01 to 86,400",
        )?;
        require(
            (0.0..600.0).contains(&self.warm_up_seconds),
            "the warm-up is 0 to 600 s",
        )?;
        require(self.runs() > 0, "--runs is at least 1")?;
        require(self.router_threads > 0, "--router-threads is at least 1")?;
        let processes = self.processes.unwrap_or(1);
        require((1..=64).contains(&processes), "--processes is 1 to 64")?;
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
        if self.url.is_some() {
            self.network.check_foreign_server()?;
        } else {
            require(self.router_pids.is_empty(), "--router-pid goes with a URL")?;
            let named = !self.cases.is_empty() && self.serializer.is_some();
            require(!named, "a --case names its own serializer")?;
        }
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
        let starts_one = self.url.is_none() || self.floor;
        if starts_one && clients >= most {
            return Err(BenchError::Options(format!(
                "{clients} clients are more than one process may hold open here ({most}); raise the \
                 hard limit of open files (ulimit -Hn), or take fewer clients"
            )));
        }
        Ok(())
    }

    /// Measured time of each run.
    pub(super) fn seconds(&self) -> f64 {
        self.seconds.unwrap_or(match self.work {
            Work::Load => 10.0,
            Work::Saturate { .. } | Work::Profiles(_) | Work::Max { .. } => 2.0,
        })
    }

    /// Unmeasured time before it; no longer than what is measured.
    pub(super) fn warm_up_seconds(&self) -> f64 {
        self.warm_up_seconds.min(self.seconds())
    }

    pub(super) fn runs(&self) -> usize {
        self.runs.unwrap_or(match self.work {
            Work::Load => 1,
            Work::Saturate { .. } | Work::Profiles(_) | Work::Max { .. } => 5,
        })
    }

    /// The cases to measure.
    pub(super) fn definite_cases(&self) -> Result<Vec<Case>, BenchError> {
        case::definite(
            &self.cases,
            self.serializer,
            self.url.as_ref(),
            &[CASE_OF_THE_DOCUMENT],
        )
    }

    /// The placements to measure in, on a machine that allows these cores.
    pub(super) fn definite_placements(&self, allowed: &[usize]) -> Vec<Placement> {
        match (self.placements.is_empty(), allowed.len()) {
            (false, _) => self.placements.clone(),
            (true, 0 | 1) => vec![Placement::SameCore],
            (true, _) => vec![Placement::Split],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_that_contradict_each_other_are_refused() {
        #[track_caller]
        fn check(change: fn(&mut PubSubOptions), expected: Result<&str, &str>) {
            let mut options = PubSubOptions::default();
            change(&mut options);
            let found = options.check().and_then(|()| options.definite_cases());
            match (found, expected) {
                (Ok(cases), Ok(expected)) => {
                    let cases: Vec<String> = cases.iter().map(ToString::to_string).collect();
                    assert_eq!(cases.join(" "), expected);
                }
                (Err(error), Err(expected)) => {
                    let error = error.to_string();
                    assert!(error.contains(expected), "{error}");
                }
                (found, expected) => panic!("{found:?} where {expected:?} was expected"),
            }
        }
        check(|_| {}, Ok("tcp-websocket-json"));
        check(
            |options| options.serializer = Some(Serializer::Cbor),
            Ok("tcp-websocket-cbor"),
        );
        check(
            |options| options.url = "rs+unix:///x.sock".parse().ok(),
            Ok("uds-rawsocket-msgpack"),
        );
        check(
            |options| {
                options.url = "ws://127.0.0.1:9000".parse().ok();
                options.cases = vec!["tcp-websocket-msgpack-batched".parse().unwrap()];
            },
            Ok("tcp-websocket-msgpack-batched"),
        );
        check(
            |options| {
                options.url = "ws://127.0.0.1:9000".parse().ok();
                options.cases = vec!["uds-rawsocket-msgpack".parse().unwrap()];
            },
            Err("not what that URL speaks"),
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
        check(|options| options.router_pids = vec![1], Err("URL"));
        check(|options| options.clients = 999_999, Err("ulimit -Hn"));
    }
}
