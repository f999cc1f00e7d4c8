//! The options of `bench amqp`, and their valid combinations.

use std::path::PathBuf;

use super::case::Case;
use crate::broker::subjects::{BrokersOptions, Copies};
use crate::error::BenchError;
use crate::frame::{AsUsual, Common, CommonOptions, Host, chosen, require, require_within};
use crate::load::HEAD_BYTES;
use crate::network::NetworkOptions;

/// Start a broker and the floor's, and a driver as a process of its own.
#[derive(Clone, Debug, clap::Args)]
pub struct AmqpOptions {
    #[arg(skip)]
    pub(super) common: Common,
    /// transient, priorities, durable, transactions, paced or durable-kept; may be repeated [default: all].
    #[arg(long = "case", value_name = "CASE")]
    cases: Vec<Case>,
    /// Bytes of each body.
    #[arg(short, long = "payload", default_value_t = 100, value_name = "BYTES")]
    pub(super) payload_bytes: usize,
    /// Maximum number of messages published and not yet consumed.
    #[arg(long, alias = "in-flight", default_value_t = 1000, value_name = "N")]
    pub(super) outstanding: u64,
    /// Durable messages between two waits for confirms.
    #[arg(long, default_value_t = 100, value_name = "N")]
    pub(super) window: u64,
    /// Maximum number of unacknowledged durable messages of a consumer; 0 sets no bound.
    #[arg(long, default_value_t = 200, value_name = "N")]
    pub(super) prefetch: u16,
    /// Messages per second of the case `paced`.
    #[arg(long, default_value_t = 1000, value_name = "N")]
    pub(super) rate: u64,
    /// Producers to one queue, each on its own connection.
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub(super) producers: usize,
    /// Consumers of one queue.
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub(super) consumers: usize,
    /// Measure brokers of three nodes, each with a copy of the queue: ours with a replicated vhost on three NATS
    /// servers, peers with quorum queues. Cases: durable, paced and durable-kept.
    #[arg(long)]
    pub(super) replicated: bool,
    /// NATS server program [default: nats-server on PATH].
    #[arg(long, value_name = "FILE")]
    nats_server: Option<PathBuf>,
    #[command(flatten)]
    pub(super) brokers: BrokersOptions,
    #[command(flatten)]
    usual: CommonOptions<AsUsual>,
    #[command(flatten)]
    network: NetworkOptions,
}

impl AmqpOptions {
    pub(super) fn on(mut self, host: Host) -> Result<Self, BenchError> {
        self.common = self
            .usual
            .common(host, &self.brokers.server, &self.network)?;
        self.check()?;
        Ok(self)
    }

    /// Refuses invalid options, and loads that would overwhelm the machine.
    fn check(&self) -> Result<(), BenchError> {
        require(
            (HEAD_BYTES..=16 << 20).contains(&self.payload_bytes),
            "--payload is 12 to 16,777,216: a message begins with its number",
        )?;
        require_within("--outstanding", &self.outstanding, 1..=1_000_000)?;
        require(
            (1..=self.outstanding).contains(&self.window),
            "--window is 1 to what --outstanding allows",
        )?;
        require(
            !self.replicated || self.cases.iter().all(|case| case.is_replicable()),
            "--replicated is for durable, paced and durable-kept: quorum queues have no transactions and no priorities",
        )?;
        require(
            self.replicated || self.nats_server.is_none(),
            "--nats-server is for --replicated",
        )?;
        require_within("--rate", &self.rate, 1..=100_000)?;
        require(
            (1..=64).contains(&self.producers) && (1..=64).contains(&self.consumers),
            "--producers and --consumers are 1 to 64",
        )
    }

    pub(super) fn cases(&self) -> Vec<Case> {
        let mut cases = chosen(&self.cases, Case::ALL);
        if self.replicated {
            cases.retain(|case| case.is_replicable());
        }
        cases
    }

    pub(super) fn copies(&self) -> Copies<'_> {
        match self.replicated {
            true => Copies::Three(self.nats_server.as_ref()),
            false => Copies::One,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::usual;

    #[test]
    fn cases_without_quorum_queues_are_not_replicated() {
        let mut options = usual::<AmqpOptions>();
        options.replicated = true;
        assert!(options.check().is_ok());
        let cases = [Case::Durable, Case::Paced, Case::DurableKept];
        assert_eq!(options.cases(), cases);
        options.cases = vec![Case::Transactions];
        let error = options.check().err().map(|error| error.to_string());
        assert!(error.is_some_and(|error| error.starts_with("--replicated is for durable")));
    }
}
