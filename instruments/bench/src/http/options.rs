//! The options of `bench http`.

use std::time::Duration;

use crate::error::BenchError;
use crate::frame::{AsUsual, Common, CommonOptions, Host, chosen, require, require_within};
use crate::subject::names;

use super::case::Case;
use super::idle::CLIENTS_MIN;

/// Start a node, and send requests to its web services on persistent connections.
#[derive(Clone, Debug, clap::Args)]
pub struct HttpOptions {
    #[arg(skip)]
    pub(super) common: Common,
    /// file (of 1 KiB), call (of a procedure, by an HTTP request), publish, websocket (events to subscribers), longpoll
    /// (the same over long-poll) or waiting (memory of waiting long-poll clients); may be repeated [default: all].
    #[arg(long = "case", value_name = "CASE")]
    cases: Vec<Case>,
    /// Connections, each with one request after the other; subscribers.
    #[arg(long, default_value_t = 16, value_name = "N")]
    pub(super) connections: usize,
    /// Clients of the case waiting.
    #[arg(long, default_value_t = 5_000, value_name = "N")]
    pub(super) clients: usize,
    /// Seconds until their memory is read: a router returns the memory of opening them every 30.
    #[arg(long, default_value_t = 35.0, value_name = "SECONDS")]
    settle: f64,
    /// crossbar or nginx (for the case file alone): start, measure and stop one found on PATH; may be repeated.
    #[arg(long = "peer", value_name = "PEER")]
    pub(super) peers: Vec<HttpPeer>,
    #[command(flatten)]
    usual: CommonOptions<AsUsual>,
}

/// A server that the bench can start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HttpPeer {
    Crossbar,
    Nginx,
}

names! {
    HttpPeer { Crossbar = "crossbar", Nginx = "nginx" }
    "the peers that can be started are crossbar and nginx"
}

impl HttpOptions {
    pub(super) fn on(mut self, host: Host) -> Result<Self, BenchError> {
        self.common = self.usual.own(host)?;
        self.check()?;
        Ok(self)
    }

    fn check(&self) -> Result<(), BenchError> {
        require_within("--connections", &self.connections, 1..=1_000)?;
        require_within("--clients", &self.clients, CLIENTS_MIN..=15_000)?;
        // The clients' requests end after two minutes.
        require(
            (0.0..=50.0).contains(&self.settle),
            "--settle is 0 to 50 seconds",
        )
    }

    pub(super) fn settling(&self) -> Duration {
        Duration::from_secs_f64(self.settle)
    }

    pub(super) fn definite_cases(&self) -> Vec<Case> {
        chosen(&self.cases, Case::ALL)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::check_refusal;

    #[test]
    fn invalid_options_are_refused() {
        let check = |change, expected| check_refusal(HttpOptions::check, change, expected);
        check(|_| {}, None);
        check(|o| (o.clients, o.settle) = (501, 0.0), None);
        check(|o| o.connections = 0, Some("--connections is 1 to 1,000"));
        check(
            |o| o.connections = 1_001,
            Some("--connections is 1 to 1,000"),
        );
        check(|o| o.clients = 500, Some("--clients is 501 to 15,000"));
        check(|o| o.clients = 15_001, Some("--clients is 501 to 15,000"));
        check(|o| o.settle = 51.0, Some("--settle is 0 to 50 seconds"));
        check(|o| o.settle = f64::NAN, Some("--settle is 0 to 50 seconds"));
    }
}
