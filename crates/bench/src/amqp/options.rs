//! What can be asked of `bench amqp`, and what cannot be had together.

use super::case::Case;
use super::ledger::HEAD_BYTES;
use crate::broker::Broker;
use crate::error::BenchError;
use crate::frame::Common;
use crate::frame::options::require;
use crate::peer::rabbitmq::BrokerPeer;

/// Everything that can be asked of the bench.
#[derive(Clone, Debug)]
pub struct AmqpOptions {
    pub common: Common,
    /// By default all.
    pub cases: Vec<Case>,
    pub payload_bytes: usize,
    /// Messages that are published and not yet consumed, at most.
    pub outstanding: u64,
    /// Durable messages between two waits for confirms.
    pub window: u64,
    /// Of consumers that acknowledge.
    pub prefetch: u16,
    /// Messages a second where they are paced.
    pub rate: u64,
    pub producers: usize,
    pub consumers: usize,
    /// Somebody else's broker, in place of ours.
    pub url: Option<Broker>,
    pub peers: Vec<BrokerPeer>,
}

impl AmqpOptions {
    /// Refuses what makes no sense, or would take the machine down.
    pub(super) fn check(&self) -> Result<(), BenchError> {
        require(
            (HEAD_BYTES..=16 << 20).contains(&self.payload_bytes),
            "--payload is 12 to 16,777,216: a message begins with its number",
        )?;
        require(
            (1..=1_000_000).contains(&self.outstanding),
            "--outstanding is 1 to 1,000,000",
        )?;
        require(
            (1..=self.outstanding).contains(&self.window),
            "--window is 1 to what --outstanding allows",
        )?;
        require((1..=100_000).contains(&self.rate), "--rate is 1 to 100,000")?;
        require(
            (1..=64).contains(&self.producers) && (1..=64).contains(&self.consumers),
            "--producers and --consumers are 1 to 64",
        )
    }

    pub(super) fn cases(&self) -> Vec<Case> {
        match self.cases.is_empty() {
            true => Case::ALL.to_vec(),
            false => self.cases.clone(),
        }
    }
}
