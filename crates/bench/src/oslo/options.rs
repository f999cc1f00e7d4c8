//! What can be asked of `bench oslo`, and what cannot be had together.

use std::path::PathBuf;
use std::time::Duration;

use super::case::{Case, Driver, Operation};
use super::topology::Topology;
use crate::broker::Broker;
use crate::error::BenchError;
use crate::machine::placement::Placement;
use crate::peer::rabbitmq::BrokerPeer;
use crate::process::stop::Stop;
use crate::report::json::Build;

/// Which half of the bench is wished for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    Rates,
    Delays,
}

/// Everything that can be asked of the bench.
#[derive(Clone, Debug)]
pub struct OsloOptions {
    pub build: Build,
    /// The `crosstie` to start as broker and workers; by default the one that runs.
    pub executable: Option<PathBuf>,
    /// By default both.
    pub operations: Vec<Operation>,
    /// By default `same-core`, and `split` where there are two cores.
    pub placements: Vec<Placement>,
    /// By default all three.
    pub topologies: Vec<Topology>,
    pub delays: Vec<Duration>,
    /// By default both.
    pub part: Option<Part>,
    /// Measured time of each round of rates.
    pub seconds: f64,
    /// Unmeasured time before it.
    pub warm_up_seconds: f64,
    /// Operations of each run of a topology.
    pub repeat: u64,
    pub runs: usize,
    /// An interpreter that has oslo.messaging, which is then measured too.
    pub python: Option<PathBuf>,
    /// Leaves the native client and server out.
    pub only_python: bool,
    /// Somebody else's broker, in place of ours.
    pub url: Option<Broker>,
    /// Its processes: without them its processor time stays unknown, and it runs where it will.
    pub broker_pids: Vec<u32>,
    pub peers: Vec<BrokerPeer>,
    pub json: Option<PathBuf>,
    /// Ends the run after the round that it is in.
    pub stop: Stop,
}

impl OsloOptions {
    /// Refuses what makes no sense, or would take for ever.
    pub(super) fn check(&self) -> Result<(), BenchError> {
        let require = |held: bool, rule: &str| match held {
            true => Ok(()),
            false => Err(BenchError::Options(rule.to_owned())),
        };
        require(
            (0.001..3_600.0).contains(&self.seconds),
            "--seconds is 0.001 to 3,600",
        )?;
        require(
            (0.0..600.0).contains(&self.warm_up_seconds),
            "the warm-up is 0 to 600 s",
        )?;
        require(self.runs > 0, "--runs is at least 1")?;
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
        )?;
        require(
            self.broker_pids.is_empty() || self.url.is_some(),
            "--broker-pid goes with --url",
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

    pub(super) fn definite_placements(&self, allowed: &[usize]) -> Vec<Placement> {
        if !self.placements.is_empty() {
            return self.placements.clone();
        }
        match allowed.len() {
            0 | 1 => vec![Placement::SameCore],
            _ => vec![Placement::SameCore, Placement::Split],
        }
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
