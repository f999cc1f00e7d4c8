//! What can be asked of `bench rpc`, and what cannot be had together.

use crosstie_wamp::Serializer;

use crate::error::BenchError;
use crate::frame::Common;
use crate::frame::options::require;
use crate::peer::Peer;
use crate::subject::case::Case;
use crate::subject::cases;
use crate::subject::target::Url;

/// Everything that can be asked of the bench.
#[derive(Clone, Debug)]
pub struct RpcOptions {
    pub common: Common,
    /// By default the two pairs of the document.
    pub cases: Vec<Case>,
    /// Calls between two lines of the document.
    pub batch: u64,
    /// Calls that each caller keeps in flight.
    pub outstanding: usize,
    /// Pairs of caller and callee, each pair with a procedure of its own.
    pub pairs: usize,
    /// Bytes of text in each call, beside its number.
    pub payload_bytes: usize,
    /// Somebody else's router, in place of one that is started.
    pub url: Option<Url>,
    pub realm: String,
    /// In place of the one that a case or URL would use.
    pub serializer: Option<Serializer>,
    pub peers: Vec<Peer>,
    /// Starts the router with its busy-poll option.
    pub spin: bool,
    pub router_threads: usize,
}

impl Default for RpcOptions {
    fn default() -> Self {
        Self {
            common: Common::default(),
            cases: Vec::new(),
            batch: 1000,
            outstanding: 1,
            pairs: 1,
            payload_bytes: 0,
            url: None,
            realm: crate::subject::router::REALM.to_owned(),
            serializer: None,
            peers: Vec::new(),
            spin: false,
            router_threads: 1,
        }
    }
}

impl RpcOptions {
    /// Refuses what makes no sense, or would take the machine down.
    pub(super) fn check(&self) -> Result<(), BenchError> {
        require(self.batch > 0, "--calls-per-line is at least 1")?;
        let outstanding = 1..=65_536;
        require(
            outstanding.contains(&self.outstanding),
            "--outstanding is 1 to 65,536",
        )?;
        require((1..=1_000).contains(&self.pairs), "--pairs is 1 to 1,000")?;
        require(self.payload_bytes <= 8 << 20, "--payload is at most 8 MiB")?;
        require(self.router_threads > 0, "--router-threads is at least 1")?;
        let named = self.url.is_none() && !self.cases.is_empty() && self.serializer.is_some();
        require(!named, "a --case names its own serializer")
    }

    pub(super) fn in_flight(&self) -> usize {
        self.outstanding * self.pairs
    }

    /// The cases to measure.
    pub(super) fn definite_cases(&self) -> Result<Vec<Case>, BenchError> {
        cases::definite(
            &self.cases,
            self.serializer,
            self.url.as_ref(),
            &Case::OF_THE_DOCUMENT,
        )
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
        check(|o| o.outstanding = 0, Err("--outstanding"));
        check(|o| o.payload_bytes = 1 << 30, Err("--payload"));
    }
}
