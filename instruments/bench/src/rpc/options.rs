//! The options of `bench rpc`, and their valid combinations.

use std::time::Duration;

use crate::error::BenchError;
use crate::frame::{AsUsual, Common, CommonOptions, Host, require, require_within};
use crate::network::NetworkOptions;
use crate::subject::{Case, RoutersOptions};

/// Start a router, and callers and callees as processes of their own.
#[derive(Clone, Debug, clap::Args)]
pub struct RpcOptions {
    #[arg(skip)]
    pub(super) common: Common,
    /// Case as SOCKET-TRANSPORT-SERIALIZER: uds-rawsocket-msgpack or tcp-websocket-json (the default: these two); may
    /// be repeated.
    #[arg(long = "case", value_name = "CASE")]
    pub(super) cases: Vec<Case>,
    /// Print the average of every N calls, in the form of the source document, above the tables.
    #[arg(long = "calls-per-line", alias = "batch", value_name = "N")]
    pub(super) calls_per_line: Option<u64>,
    /// Calls that each caller keeps in flight.
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub(super) outstanding: usize,
    /// Calls per second of each caller, one after the other, instead of as many as it can.
    #[arg(long, value_name = "N", conflicts_with = "outstanding")]
    pub(super) rate: Option<u32>,
    /// Pairs of caller and callee.
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub(super) pairs: usize,
    /// Bytes of text in each call, besides its number.
    #[arg(long = "payload", default_value_t = 0, value_name = "BYTES")]
    pub(super) payload_bytes: usize,
    #[command(flatten)]
    pub(super) routers: RoutersOptions,
    /// Start the router with its busy-poll option.
    #[arg(long)]
    pub(super) spin: bool,
    #[command(flatten)]
    pub(super) usual: CommonOptions<AsUsual>,
    #[command(flatten)]
    pub(super) network: NetworkOptions,
}

impl RpcOptions {
    pub(super) fn on(mut self, host: Host) -> Result<Self, BenchError> {
        self.common = self
            .usual
            .common(host, &self.routers.server, &self.network)?;
        self.check()?;
        Ok(self)
    }

    /// Refuses invalid options, and loads that would overwhelm the machine.
    fn check(&self) -> Result<(), BenchError> {
        require(
            self.calls_per_line != Some(0),
            "--calls-per-line is at least 1",
        )?;
        require(
            self.rate.is_none_or(|rate| (1..=10_000).contains(&rate)),
            "--rate is from 1 to 10,000",
        )?;
        require_within("--outstanding", &self.outstanding, 1..=65_536)?;
        require_within("--pairs", &self.pairs, 1..=1_000)?;
        require(self.payload_bytes <= 8 << 20, "--payload is at most 8 MiB")?;
        let is_polling_ours = self.routers.server.url.is_none() || !self.spin;
        require(
            is_polling_ours,
            "--spin starts a router, and a --url names one",
        )?;
        self.routers.check(&self.cases)
    }

    /// Calls in each batch of which the caller reports the average.
    pub(super) fn batch(&self) -> u64 {
        self.calls_per_line.unwrap_or(1_000)
    }

    /// The time from one call to the next, if it is given.
    pub(super) fn every(&self) -> Option<Duration> {
        self.rate.map(|rate| Duration::from_secs(1) / rate.max(1))
    }

    /// Whether calls are sequential, to a router with its default options.
    pub(super) fn is_one_call(&self) -> bool {
        self.in_flight() == 1 && self.routers.threads == 1 && !self.spin && self.rate.is_none()
    }

    pub(super) fn in_flight(&self) -> usize {
        self.outstanding * self.pairs
    }

    /// The cases to measure.
    pub(super) fn definite_cases(&self) -> Result<Vec<Case>, BenchError> {
        self.routers.cases(&self.cases, &Case::OF_THE_DOCUMENT)
    }
}

#[cfg(test)]
mod tests {
    use crosstie_wamp::Serializer;

    use super::*;
    use crate::frame::{check_cases, usual};

    #[test]
    fn contradictory_options_are_refused() {
        #[track_caller]
        fn check(change: fn(&mut RpcOptions), expected: Result<&str, &str>) {
            let mut options = usual::<RpcOptions>();
            change(&mut options);
            let cases = options.check().and_then(|()| options.definite_cases());
            check_cases(cases, expected);
        }
        check(|_| (), Ok("uds-rawsocket-msgpack, tcp-websocket-json"));
        check(
            |o| o.routers.serializer = Some(Serializer::Cbor),
            Ok("uds-rawsocket-cbor, tcp-websocket-cbor"),
        );
        check(
            |o| o.cases = vec!["tcp-rawsocket-json".parse().unwrap()],
            Ok("tcp-rawsocket-json"),
        );
        check(
            |o| o.routers.server.url = "ws://127.0.0.1:1/ws".parse().ok(),
            Ok("tcp-websocket-json"),
        );
        check(
            |o| o.routers.server.url = "rs+unix:///x".parse().ok(),
            Ok("uds-rawsocket-msgpack"),
        );
        check(
            |o| {
                o.routers.server.url = "rs+unix:///x".parse().ok();
                o.cases = Case::OF_THE_DOCUMENT.to_vec();
            },
            Err("tcp-websocket-json is not the URL's transport"),
        );
        check(|o| o.calls_per_line = Some(0), Err("--calls-per-line"));
        check(
            |o| {
                o.routers.server.url = "rs+unix:///x".parse().ok();
                o.spin = true;
            },
            Err("--spin starts a router"),
        );
        check(|o| o.outstanding = 0, Err("--outstanding"));
        check(|o| o.rate = Some(0), Err("--rate"));
        check(|o| o.payload_bytes = 1 << 30, Err("--payload"));
    }
}
