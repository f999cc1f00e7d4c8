//! What can be asked of `bench pubsub`, and what cannot be had together.

use std::time::Duration;

use crosstie_wamp::Serializer;

use super::profiles::PROFILES;
use crate::error::BenchError;
use crate::frame::Common;
use crate::frame::options::require;
use crate::peer::Peer;
use crate::subject::case::{Case, Socket, Transport};
use crate::subject::cases;
use crate::subject::target::Url;
use crate::wamp::holder::sessions_max;

/// Everything that can be asked of the bench.
#[derive(Clone, Debug)]
pub struct PubSubOptions {
    /// Of rounds and seconds the usual ones are [`Work::usual`]'s.
    pub common: Common,
    pub work: Work,
    /// By default the document's.
    pub cases: Vec<Case>,
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
    /// Whether the floor is measured too.
    pub floor: bool,
    /// Somebody else's router, in place of one that is started.
    pub url: Option<Url>,
    pub realm: String,
    /// In place of the one that a case or URL would use.
    pub serializer: Option<Serializer>,
    pub peers: Vec<Peer>,
    pub router_threads: usize,
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

impl Work {
    /// Rounds, and measured seconds of each.
    pub fn usual(&self) -> (usize, f64) {
        match self {
            Self::Load => (1, 10.0),
            Self::Saturate { .. } | Self::Profiles(_) | Self::Max { .. } => (5, 2.0),
        }
    }

    /// Whether the rate is the router's to decide.
    pub(super) fn is_free(&self) -> bool {
        matches!(self, Self::Saturate { .. } | Self::Max { .. })
    }
}

impl Default for PubSubOptions {
    fn default() -> Self {
        Self {
            common: Common::default(),
            work: Work::Load,
            cases: Vec::new(),
            clients: 10,
            batch: 1,
            rate_hz: 25.0,
            payload_bytes: 32,
            uprate: 1_000.0,
            topic: None,
            acknowledge: false,
            processes: None,
            floor: true,
            url: None,
            realm: crate::subject::router::REALM.to_owned(),
            serializer: None,
            peers: Vec::new(),
            router_threads: 1,
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
        let named = self.url.is_none() && !self.cases.is_empty() && self.serializer.is_some();
        require(!named, "a --case names its own serializer")?;
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

    /// The cases to measure.
    pub(super) fn definite_cases(&self) -> Result<Vec<Case>, BenchError> {
        cases::definite(
            &self.cases,
            self.serializer,
            self.url.as_ref(),
            &[CASE_OF_THE_DOCUMENT],
        )
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
        check(|options| options.clients = 999_999, Err("ulimit -Hn"));
    }
}
