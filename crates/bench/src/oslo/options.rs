//! What can be asked of `bench oslo`, and what cannot be had together.

use std::path::PathBuf;
use std::time::Duration;

use super::case::{Case, Driver, Operation};
use super::topology::Topology;
use crate::broker::Broker;
use crate::error::BenchError;
use crate::frame::Common;
use crate::frame::options::require;
use crate::peer::rabbitmq::BrokerPeer;

/// Which half of the bench is wished for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    Rates,
    Delays,
}

/// Everything that can be asked of the bench.
#[derive(Clone, Debug)]
pub struct OsloOptions {
    /// The network is the plain one: links are what is measured.
    pub common: Common,
    /// By default both.
    pub operations: Vec<Operation>,
    /// By default all three.
    pub topologies: Vec<Topology>,
    pub delays: Vec<Duration>,
    /// By default both.
    pub part: Option<Part>,
    /// Operations of each run of a topology.
    pub repeat: u64,
    /// An interpreter that has oslo.messaging, which is then measured too.
    pub python: Option<PathBuf>,
    /// Leaves the native client and server out.
    pub only_python: bool,
    /// Somebody else's broker, in place of ours.
    pub url: Option<Broker>,
    pub peers: Vec<BrokerPeer>,
}

impl OsloOptions {
    /// Refuses what makes no sense, or would take for ever.
    pub(super) fn check(&self) -> Result<(), BenchError> {
        require(
            (1..=1_000_000).contains(&self.repeat),
            "--repeat is 1 to 1,000,000",
        )?;
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
        let operations = match self.operations.is_empty() {
            true => &Operation::ALL[..],
            false => &self.operations,
        };
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

    /// Topologies and delays; nothing is between those who are together.
    pub(super) fn ways(&self) -> Vec<(Topology, Duration)> {
        let topologies = match self.topologies.is_empty() {
            true => &Topology::ALL[..],
            false => &self.topologies,
        };
        let mut ways = Vec::new();
        for topology in topologies {
            match topology {
                Topology::Together => ways.push((*topology, Duration::ZERO)),
                _ => ways.extend(self.delays.iter().map(|delay| (*topology, *delay))),
            }
        }
        ways
    }
}
