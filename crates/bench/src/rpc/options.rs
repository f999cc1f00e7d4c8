//! What can be asked of `bench rpc`, and what cannot be had together.

use std::path::PathBuf;

use crosstie_wamp::Serializer;

use crate::error::BenchError;
use crate::machine::placement::Placement;
use crate::network::NetworkOptions;
use crate::peer::Peer;
use crate::process::stop::Stop;
use crate::report::json::Build;
use crate::subject::case::{self, Case};
use crate::subject::target::Url;

/// Everything that can be asked of the bench.
#[derive(Clone, Debug)]
pub struct RpcOptions {
    pub build: Build,
    /// The `crosstie` to start as router and workers; by default the one that runs.
    pub executable: Option<PathBuf>,
    /// By default the two pairs of the document.
    pub cases: Vec<Case>,
    /// By default `same-core`, and `split` where there are two cores.
    pub placements: Vec<Placement>,
    /// Measured time of each round.
    pub seconds: f64,
    /// Unmeasured time before it.
    pub warm_up_seconds: f64,
    /// Calls between two lines of the document.
    pub batch: u64,
    /// Calls that each caller keeps in flight.
    pub outstanding: usize,
    /// Pairs of caller and callee, each pair with a procedure of its own.
    pub pairs: usize,
    /// Bytes of text in each call, beside its number.
    pub payload_bytes: usize,
    pub runs: usize,
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
    /// Ends the run after the round that it is in.
    pub stop: Stop,
    /// Starts the router with its busy-poll option.
    pub spin: bool,
    pub router_threads: usize,
    pub network: NetworkOptions,
}

impl Default for RpcOptions {
    fn default() -> Self {
        Self {
            build: Build::default(),
            executable: None,
            cases: Vec::new(),
            placements: Vec::new(),
            seconds: 1.0,
            warm_up_seconds: 0.3,
            batch: 1000,
            outstanding: 1,
            pairs: 1,
            payload_bytes: 0,
            runs: 5,
            url: None,
            router_pids: Vec::new(),
            realm: crate::subject::router::REALM.to_owned(),
            serializer: None,
            peers: Vec::new(),
            json: None,
            stop: Stop::default(),
            spin: false,
            router_threads: 1,
            network: NetworkOptions::default(),
        }
    }
}

impl RpcOptions {
    /// Refuses what makes no sense, or would take the machine down.
    pub(super) fn check(&self) -> Result<(), BenchError> {
        let require = |held: bool, rule: &str| match held {
            true => Ok(()),
            false => Err(BenchError::Options(rule.to_owned())),
        };
        let seconds = 0.001..3_600.0;
        require(
            seconds.contains(&self.seconds),
            "--seconds is 0.001 to 3,600",
        )?;
        require(
            (0.0..600.0).contains(&self.warm_up_seconds),
            "the warm-up is 0 to 600 s",
        )?;
        require(self.runs > 0, "--runs is at least 1")?;
        require(self.batch > 0, "--batch is at least 1")?;
        let outstanding = 1..=65_536;
        require(
            outstanding.contains(&self.outstanding),
            "--outstanding is 1 to 65,536",
        )?;
        require((1..=1_000).contains(&self.pairs), "--pairs is 1 to 1,000")?;
        require(self.payload_bytes <= 8 << 20, "--payload is at most 8 MiB")?;
        require(self.router_threads > 0, "--router-threads is at least 1")?;
        if self.url.is_some() {
            self.network.check_foreign_server()?;
        } else {
            require(self.router_pids.is_empty(), "--router-pid goes with --url")?;
            let named = !self.cases.is_empty() && self.serializer.is_some();
            require(!named, "a --case names its own serializer")?;
        }
        Ok(())
    }

    /// The cases to measure.
    pub(super) fn definite_cases(&self) -> Result<Vec<Case>, BenchError> {
        case::definite(
            &self.cases,
            self.serializer,
            self.url.as_ref(),
            &Case::OF_THE_DOCUMENT,
        )
    }

    /// The placements to measure in, on a machine that allows these cores.
    pub(super) fn definite_placements(&self, allowed: &[usize]) -> Vec<Placement> {
        match (self.placements.is_empty(), allowed.len()) {
            (false, _) => self.placements.clone(),
            (true, 0 | 1) => vec![Placement::SameCore],
            (true, _) => vec![Placement::SameCore, Placement::Split],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_that_contradict_each_other_are_refused() {
        #[track_caller]
        fn check(change: fn(&mut RpcOptions), expected: Result<&str, &str>) {
            let mut options = RpcOptions::default();
            change(&mut options);
            let found = options
                .check()
                .and_then(|()| options.definite_cases())
                .map(|cases| {
                    cases
                        .iter()
                        .map(ToString::to_string)
                        .collect::<Vec<_>>()
                        .join(" ")
                });
            match (found, expected) {
                (Ok(cases), Ok(expected)) => assert_eq!(cases, expected),
                (Err(error), Err(expected)) => {
                    let error = error.to_string();
                    assert!(error.contains(expected), "{error}");
                }
                (found, expected) => panic!("{found:?} instead of {expected:?}"),
            }
        }
        check(|_| (), Ok("uds-rawsocket-msgpack tcp-websocket-json"));
        check(
            |o| o.serializer = Some(Serializer::Cbor),
            Ok("uds-rawsocket-cbor tcp-websocket-cbor"),
        );
        check(
            |o| o.cases = vec!["tcp-rawsocket-json".parse().unwrap()],
            Ok("tcp-rawsocket-json"),
        );
        check(
            |o| o.url = "ws://127.0.0.1:1/ws".parse().ok(),
            Ok("tcp-websocket-json"),
        );
        check(
            |o| o.url = "rs+unix:///x".parse().ok(),
            Ok("uds-rawsocket-msgpack"),
        );
        check(
            |o| {
                o.url = "rs+unix:///x".parse().ok();
                o.cases = Case::OF_THE_DOCUMENT.to_vec();
            },
            Err("tcp-websocket-json is not what that URL speaks"),
        );
        check(
            |o| o.router_pids = vec![1],
            Err("--router-pid goes with --url"),
        );
        check(|o| o.runs = 0, Err("--runs"));
        check(|o| o.seconds = 0.0, Err("--seconds"));
        check(|o| o.seconds = f64::NAN, Err("--seconds"));
        check(|o| o.outstanding = 0, Err("--outstanding"));
        check(|o| o.payload_bytes = 1 << 30, Err("--payload"));
    }

    #[test]
    fn one_core_has_no_split() {
        let options = RpcOptions::default();
        assert_eq!(options.definite_placements(&[3]), [Placement::SameCore]);
        let both = [Placement::SameCore, Placement::Split];
        assert_eq!(options.definite_placements(&[0, 1]), both);
    }
}
