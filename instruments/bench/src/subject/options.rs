//! The options of a run's routers: their origin, how ours is started, and their cases.

use crosstie_wamp::Serializer;

use crate::error::BenchError;
use crate::frame::{Server, ServerOptions, Site, require};
use crate::peer::Peer;
use crate::subject::{Case, REALM, RouterOptions, Url, Waiting};

/// The options of every instrument of routers.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct RoutersOptions {
    #[command(flatten)]
    pub(crate) server: ServerOptions<Url>,
    #[arg(long, default_value = REALM)]
    pub(crate) realm: String,
    /// Serializer in place of the case's or URL's: json, msgpack or cbor.
    #[arg(long, value_parser = serializer)]
    pub(crate) serializer: Option<Serializer>,
    /// crossbar: start, measure and stop a Crossbar.io found on PATH; may be repeated.
    #[arg(long = "peer", value_name = "PEER")]
    pub(crate) peers: Vec<Peer>,
    /// Threads of the started router.
    #[arg(long = "router-threads", default_value_t = 1, value_name = "N")]
    pub(crate) threads: usize,
}

impl Server for Url {
    const WHAT: &'static str = "router instead of one that is started: ws://…, rs://…, \
                                ws+unix://…, rs+unix://…";
}

impl RoutersOptions {
    /// Refuses options that contradict the named cases.
    pub(crate) fn check(&self, named: &[Case]) -> Result<(), BenchError> {
        require(self.threads > 0, "--router-threads is at least 1")?;
        let is_named_twice =
            self.server.url.is_none() && !named.is_empty() && self.serializer.is_some();
        require(!is_named_twice, "a --case names its own serializer")
    }

    /// Threads of the router that the bench starts; those of a server given by URL are unknown.
    pub(crate) fn own_threads(&self) -> Option<usize> {
        self.server.url.is_none().then_some(self.threads)
    }

    /// The main router, for the line above the tables.
    pub(crate) fn describe(&self, spin: bool) -> String {
        let polling = if spin { ", busy-polling" } else { "" };
        match self.own_threads() {
            None => "the one at --url, as it was started".to_owned(),
            Some(1) => format!("1 thread{polling}"),
            Some(threads) => format!("{threads} threads{polling}"),
        }
    }

    /// The options of ours, without a URL.
    pub(crate) fn own(&self, site: &Site, spin: bool) -> RouterOptions {
        RouterOptions {
            executable: site.executable.clone(),
            threads: Some(self.threads),
            waiting: match spin {
                true => Waiting::Polling,
                false => Waiting::Usual,
            },
            compresses: false,
        }
    }

    /// The cases to measure: those named, or the usual ones, or those of a URL.
    pub(crate) fn cases(&self, named: &[Case], usual: &[Case]) -> Result<Vec<Case>, BenchError> {
        let Some(url) = &self.server.url else {
            let mut cases = match named.is_empty() {
                true => usual.to_vec(),
                false => named.to_vec(),
            };
            if let Some(serializer) = self.serializer {
                cases
                    .iter_mut()
                    .for_each(|case| case.serializer = serializer);
            }
            return Ok(cases);
        };
        let usual = match url.websocket {
            true => Serializer::Json,
            false => Serializer::MsgPack,
        };
        let url_case = url.case(self.serializer.unwrap_or(usual), false);
        if named.is_empty() {
            return Ok(vec![url_case]);
        }
        let stranger = named.iter().find(|case| {
            case.socket != url_case.socket
                || case.transport.is_websocket() != url_case.transport.is_websocket()
        });
        match stranger {
            Some(case) => Err(BenchError::Options(format!(
                "{case} is not the URL's transport"
            ))),
            None => Ok(named.to_vec()),
        }
    }
}

/// As the value of that option.
fn serializer(name: &str) -> Result<Serializer, String> {
    Serializer::from_name(name).ok_or_else(|| "expected json, msgpack or cbor".to_owned())
}
