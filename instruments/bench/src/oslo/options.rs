//! The options of `bench oslo`, and their valid combinations.

use std::path::PathBuf;
use std::time::Duration;

use crosstie_wan::units;

use super::case::{Case, Driver, Operation};
use super::topology::Topology;
use crate::broker::subjects::BrokersOptions;
use crate::error::BenchError;
use crate::frame::{AsUsual, Common, CommonOptions, Host, chosen, require, require_within};
use crate::network::NetworkOptions;

/// The half of the bench to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Part {
    Rates,
    Delays,
}

/// Start a broker and the floor's, and clients and servers as processes of their own. Without a selection, measure
/// rates, then delays: about a minute, and with --python a quarter of an hour.
#[derive(Clone, Debug, clap::Args)]
pub struct OsloOptions {
    /// The network is the plain one: delay lines are part of the cases.
    #[arg(skip)]
    pub(super) common: Common,
    /// call or cast; may be repeated [default: both].
    #[arg(long = "operation", value_name = "OPERATION")]
    operations: Vec<Operation>,
    /// together, remote-client or remote-server; may be repeated [default: all].
    #[arg(long = "topology", value_name = "TOPOLOGY")]
    topologies: Vec<Topology>,
    /// Delays that a link adds to the round trip, on the way to the broker.
    #[arg(
        long,
        value_name = "TIME,…",
        value_delimiter = ',',
        default_value = "0ms,10ms,50ms,100ms",
        value_parser = units::duration
    )]
    pub(super) delays: Vec<Duration>,
    /// Measure only the rates, or only the delays.
    #[arg(long = "only", value_name = "ONLY")]
    pub(super) part: Option<Part>,
    /// Operations of each run with a delay.
    #[arg(long, default_value_t = 100, value_name = "N")]
    pub(super) repeat: u64,
    /// Interpreter with oslo.messaging, whose client and server are then measured too.
    #[arg(long, value_name = "PROGRAM")]
    pub(super) python: Option<PathBuf>,
    /// Omit the native client and server.
    #[arg(long, requires = "python")]
    only_python: bool,
    #[command(flatten)]
    pub(super) brokers: BrokersOptions,
    #[command(flatten)]
    usual: CommonOptions<AsUsual>,
}

impl OsloOptions {
    pub(super) fn on(mut self, host: Host) -> Result<Self, BenchError> {
        let network = NetworkOptions::default();
        self.common = self.usual.common(host, &self.brokers.server, &network)?;
        self.check()?;
        Ok(self)
    }

    /// Refuses invalid options, and runs that would take forever.
    fn check(&self) -> Result<(), BenchError> {
        require_within("--repeat", &self.repeat, 1..=1_000_000)?;
        require(
            self.delays
                .iter()
                .all(|delay| *delay <= Duration::from_secs(10)),
            "a --delay is at most 10s",
        )?;
        require(
            !self.only_python || self.python.is_some(),
            "--only-python takes an interpreter: --python VENV/bin/python3",
        )
    }

    pub(super) fn cases(&self) -> Vec<Case> {
        let operations = chosen(&self.operations, Operation::ALL);
        let native = (!self.only_python).then_some(Driver::Native);
        let python = self.python.as_ref().map(|_| Driver::Python);
        let drivers = native.into_iter().chain(python);
        let cases = drivers.flat_map(|driver| {
            let of = move |operation: &Operation| Case {
                operation: *operation,
                driver,
            };
            operations.iter().map(of)
        });
        cases.collect()
    }

    /// Topologies and delays; ends on one machine have no line between them.
    pub(super) fn ways(&self) -> Vec<(Topology, Duration)> {
        let mut ways = Vec::new();
        for topology in chosen(&self.topologies, &Topology::ALL) {
            match topology {
                Topology::Together => ways.push((topology, Duration::ZERO)),
                _ => ways.extend(self.delays.iter().map(|delay| (topology, *delay))),
            }
        }
        ways
    }
}
