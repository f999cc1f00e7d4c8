//! What can be asked of `bench rpc`, and what cannot be had together.

use crosstie_wamp::Serializer;

use crate::error::BenchError;
use crate::frame::{AsUsual, Common, CommonOptions, Host, Server, ServerOptions, require};
use crate::network::NetworkOptions;
use crate::peer::Peer;
use crate::subject::cases::{self, serializer};
use crate::subject::{Case, REALM, Url};

impl Server for Url {
    const WHAT: &'static str = "router instead of one that is started: ws://…, rs://…, \
                                ws+unix://…, rs+unix://…";
}

/// Starts a router, and callers and callees as processes of their own.
#[derive(Clone, Debug, clap::Args)]
pub struct RpcOptions {
    #[arg(skip)]
    pub(super) common: Common,
    /// SOCKET-TRANSPORT-SERIALIZER, as in uds-rawsocket-msgpack or tcp-websocket-json (the
    /// default: these two); may be repeated.
    #[arg(long = "case", value_name = "CASE")]
    pub(super) cases: Vec<Case>,
    /// Calls between two lines of the document's form.
    #[arg(
        long = "calls-per-line",
        alias = "batch",
        default_value_t = 1000,
        value_name = "N"
    )]
    pub(super) batch: u64,
    /// Calls that each caller keeps in flight.
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub(super) outstanding: usize,
    /// Pairs of caller and callee.
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub(super) pairs: usize,
    /// Bytes of text in each call, beside its number.
    #[arg(long = "payload", default_value_t = 0, value_name = "BYTES")]
    pub(super) payload_bytes: usize,
    #[command(flatten)]
    pub(super) server: ServerOptions<Url>,
    #[arg(long, default_value = REALM)]
    pub(super) realm: String,
    /// json, msgpack or cbor, in place of the one that a case or URL would use.
    #[arg(long, value_parser = serializer)]
    pub(super) serializer: Option<Serializer>,
    /// crossbar: start, measure and stop a Crossbar.io found on PATH; may be repeated.
    #[arg(long = "peer", value_name = "PEER")]
    pub(super) peers: Vec<Peer>,
    /// Start the router with its busy-poll option.
    #[arg(long)]
    pub(super) spin: bool,
    /// Threads of the router that is started.
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub(super) router_threads: usize,
    #[command(flatten)]
    pub(super) usual: CommonOptions<AsUsual>,
    #[command(flatten)]
    pub(super) network: NetworkOptions,
}

impl RpcOptions {
    pub(super) fn on(mut self, host: Host) -> Result<Self, BenchError> {
        self.common = self.usual.common(host, &self.server, &self.network)?;
        self.check()?;
        Ok(self)
    }

    /// Refuses what makes no sense, or would take the machine down.
    fn check(&self) -> Result<(), BenchError> {
        require(self.batch > 0, "--calls-per-line is at least 1")?;
        let outstanding = 1..=65_536;
        require(
            outstanding.contains(&self.outstanding),
            "--outstanding is 1 to 65,536",
        )?;
        require((1..=1_000).contains(&self.pairs), "--pairs is 1 to 1,000")?;
        require(self.payload_bytes <= 8 << 20, "--payload is at most 8 MiB")?;
        require(self.router_threads > 0, "--router-threads is at least 1")?;
        let named =
            self.server.url.is_none() && !self.cases.is_empty() && self.serializer.is_some();
        require(!named, "a --case names its own serializer")
    }

    /// Whether a call goes after the other, of a router that nothing special is asked of.
    pub(super) fn is_one_call(&self) -> bool {
        self.in_flight() == 1 && self.router_threads == 1 && !self.spin
    }

    pub(super) fn in_flight(&self) -> usize {
        self.outstanding * self.pairs
    }

    /// The cases to measure.
    pub(super) fn definite_cases(&self) -> Result<Vec<Case>, BenchError> {
        cases::definite(
            &self.cases,
            self.serializer,
            self.server.url.as_ref(),
            &Case::OF_THE_DOCUMENT,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{check_cases, usual};

    #[test]
    fn options_that_contradict_each_other_are_refused() {
        #[track_caller]
        fn check(change: fn(&mut RpcOptions), expected: Result<&str, &str>) {
            let mut options = usual::<RpcOptions>();
            change(&mut options);
            let cases = options.check().and_then(|()| options.definite_cases());
            check_cases(cases, expected);
        }
        check(|_| (), Ok("uds-rawsocket-msgpack, tcp-websocket-json"));
        check(
            |o| o.serializer = Some(Serializer::Cbor),
            Ok("uds-rawsocket-cbor, tcp-websocket-cbor"),
        );
        check(
            |o| o.cases = vec!["tcp-rawsocket-json".parse().unwrap()],
            Ok("tcp-rawsocket-json"),
        );
        check(
            |o| o.server.url = "ws://127.0.0.1:1/ws".parse().ok(),
            Ok("tcp-websocket-json"),
        );
        check(
            |o| o.server.url = "rs+unix:///x".parse().ok(),
            Ok("uds-rawsocket-msgpack"),
        );
        check(
            |o| {
                o.server.url = "rs+unix:///x".parse().ok();
                o.cases = Case::OF_THE_DOCUMENT.to_vec();
            },
            Err("tcp-websocket-json is not what that URL speaks"),
        );
        check(|o| o.outstanding = 0, Err("--outstanding"));
        check(|o| o.payload_bytes = 1 << 30, Err("--payload"));
    }
}
