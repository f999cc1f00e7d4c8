//! What can be asked of `bench amqp`, and what cannot be had together.

use std::path::PathBuf;

use super::case::Case;
use super::ledger::HEAD_BYTES;
use crate::broker::Broker;
use crate::error::BenchError;
use crate::machine::placement::Placement;
use crate::network::NetworkOptions;
use crate::peer::rabbitmq::BrokerPeer;
use crate::process::stop::Stop;
use crate::report::json::Build;

/// Everything that can be asked of the bench.
#[derive(Clone, Debug)]
pub struct AmqpOptions {
    pub build: Build,
    /// The `crosstie` to start as broker and workers; by default the one that runs.
    pub executable: Option<PathBuf>,
    /// By default all.
    pub cases: Vec<Case>,
    /// By default `same-core`, and `split` where there are two cores.
    pub placements: Vec<Placement>,
    /// Measured time of each round.
    pub seconds: f64,
    /// Unmeasured time before it.
    pub warm_up_seconds: f64,
    pub payload_bytes: usize,
    /// Messages that are published and not yet consumed, at most.
    pub in_flight: u64,
    /// Durable messages between two waits for confirms.
    pub window: u64,
    /// Of consumers that acknowledge.
    pub prefetch: u16,
    /// Messages a second where they are paced.
    pub rate: u64,
    pub producers: usize,
    pub consumers: usize,
    pub runs: usize,
    /// Somebody else's broker, in place of ours.
    pub url: Option<Broker>,
    /// Its processes: without them its processor time stays unknown, and it runs where it will.
    pub broker_pids: Vec<u32>,
    pub peers: Vec<BrokerPeer>,
    pub network: NetworkOptions,
    pub json: Option<PathBuf>,
    /// Ends the run after the round that it is in.
    pub stop: Stop,
}

impl AmqpOptions {
    /// Refuses what makes no sense, or would take the machine down.
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
            (HEAD_BYTES..=16 << 20).contains(&self.payload_bytes),
            "--payload is 12 to 16,777,216: a message begins with its number",
        )?;
        require(
            (1..=1_000_000).contains(&self.in_flight),
            "--in-flight is 1 to 1,000,000",
        )?;
        require(
            (1..=self.in_flight).contains(&self.window),
            "--window is 1 to what --in-flight allows",
        )?;
        require((1..=100_000).contains(&self.rate), "--rate is 1 to 100,000")?;
        require(
            (1..=64).contains(&self.producers) && (1..=64).contains(&self.consumers),
            "--producers and --consumers are 1 to 64",
        )?;
        require(
            self.broker_pids.is_empty() || self.url.is_some(),
            "--broker-pid goes with --url",
        )
    }

    pub(super) fn cases(&self) -> Vec<Case> {
        match self.cases.is_empty() {
            true => Case::ALL.to_vec(),
            false => self.cases.clone(),
        }
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
}
