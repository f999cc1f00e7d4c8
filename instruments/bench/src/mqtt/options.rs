//! The options of `bench mqtt`, and their valid combinations.

use std::time::Duration;

use super::case::{Case, Kind};
use super::idle::FIRST;
use super::subjects::{BrokersOptions, MqttPeer};
use crate::error::BenchError;
use crate::frame::{AsUsual, Common, CommonOptions, Host, chosen, require, require_within};
use crate::load::HEAD_BYTES;
use crate::network::NetworkOptions;
use crate::subject::names;

/// Start a broker of MQTT and the floor's, and a driver as a process of its own.
#[derive(Clone, Debug, clap::Args)]
pub struct MqttOptions {
    #[arg(skip)]
    pub(super) common: Common,
    /// fan-out, fan-out-paced, fan-in, qos-0, qos-1, qos-2, durable, durable-kept, connections, connections-tls or idle;
    /// may be repeated [default: all].
    #[arg(long = "case", value_name = "CASE")]
    cases: Vec<Case>,
    /// Version that the clients speak: 3.1.1 or 5.
    #[arg(long, default_value_t = Protocol::V311, value_name = "VERSION")]
    pub(super) protocol: Protocol,
    /// Bytes of each payload.
    #[arg(short, long = "payload", default_value_t = 100, value_name = "BYTES")]
    pub(super) payload_bytes: usize,
    /// Maximum number of messages published and not yet arrived everywhere, or not yet acknowledged.
    #[arg(long, alias = "in-flight", default_value_t = 64, value_name = "N")]
    pub(super) outstanding: u64,
    /// Subscribers of fan-out, publishers of fan-in.
    #[arg(long, default_value_t = 500, value_name = "N")]
    pub(super) fan: usize,
    /// Publications per second of fan-out-paced.
    #[arg(long, default_value_t = 40, value_name = "N")]
    pub(super) rate: u64,
    /// Clients of connections that connect at a time.
    #[arg(long, default_value_t = 16, value_name = "N")]
    pub(super) connections: usize,
    /// Clients of idle.
    #[arg(long, default_value_t = 15_000, value_name = "N")]
    pub(super) clients: usize,
    /// Seconds until their memory is read: a router returns the memory of opening them every 30.
    #[arg(long, default_value_t = 35.0, value_name = "SECONDS")]
    settle: f64,
    #[command(flatten)]
    pub(super) brokers: BrokersOptions,
    #[command(flatten)]
    usual: CommonOptions<AsUsual>,
    #[command(flatten)]
    network: NetworkOptions,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    V311,
    V5,
}

names! {
    Protocol { V311 = "3.1.1", V5 = "5" }
    "a version is 3.1.1 or 5"
}

/// 1 MiB is the usual maximum of a packet.
const PAYLOAD_BYTES_MAX: usize = 1_000_000;

impl MqttOptions {
    pub(super) fn on(mut self, host: Host) -> Result<Self, BenchError> {
        self.common = self
            .usual
            .common(host, &self.brokers.server, &self.network)?;
        self.check()?;
        Ok(self)
    }

    fn check(&self) -> Result<(), BenchError> {
        require(
            (HEAD_BYTES..=PAYLOAD_BYTES_MAX).contains(&self.payload_bytes),
            "--payload is 12 to 1,000,000: a message begins with its number",
        )?;
        // Each has a packet identifier.
        require_within("--outstanding", &self.outstanding, 1..=65_535)?;
        require_within("--fan", &self.fan, 2..=5_000)?;
        require_within("--rate", &self.rate, 10..=10_000)?;
        require_within("--connections", &self.connections, 1..=256)?;
        require_within("--clients", &self.clients, FIRST + 1..=25_000)?;
        require_within("--settle", &self.settle, 0.0..=600.0)?;
        require(
            !self.has_v5_peer(),
            "--peer rabbitmq speaks 3.1.1, and --protocol is 5",
        )?;
        require(
            self.may_hold() || !self.cases.contains(&Case::Idle),
            "--case idle with a --url needs --pid and --runs 1: memory that a broker keeps for later is not measured twice",
        )?;
        let is_tls = self.brokers.server.url.as_ref().map(|url| url.is_tls);
        let refused = match is_tls {
            Some(true) => Case::Connections,
            Some(false) => Case::ConnectionsTls,
            None => return Ok(()),
        };
        require(
            !self.cases.contains(&refused),
            "--case connections is for mqtt://, connections-tls for mqtts://",
        )
    }

    fn has_v5_peer(&self) -> bool {
        self.is_v5() && self.brokers.peers.contains(&MqttPeer::RabbitMq)
    }

    /// Whether the memory of idle clients can be measured: a broker of ours is fresh in each round.
    fn may_hold(&self) -> bool {
        let server = &self.brokers.server;
        server.url.is_none() || (!server.pids.is_empty() && self.common.runs == 1)
    }

    pub(super) fn is_v5(&self) -> bool {
        self.protocol == Protocol::V5
    }

    pub(super) fn settling(&self) -> Duration {
        Duration::from_secs_f64(self.settle)
    }

    pub(super) fn cases(&self) -> Vec<Case> {
        let mut cases = chosen(&self.cases, Case::ALL);
        let url = self.brokers.server.url.as_ref();
        cases.retain(|case| match case.kind() {
            Kind::Memory => self.may_hold(),
            Kind::Connections { is_tls } => url.is_none_or(|url| url.is_tls == is_tls),
            Kind::Messages => true,
        });
        cases
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{check_refusal, usual};

    #[test]
    fn invalid_options_are_refused() {
        let check = |change, expected| check_refusal(MqttOptions::check, change, expected);
        check(|_| {}, None);
        check(
            |o| o.payload_bytes = 11,
            Some("--payload is 12 to 1,000,000: a message begins with its number"),
        );
        check(|o| o.outstanding = 0, Some("--outstanding is 1 to 65,535"));
        check(|o| o.fan = 1, Some("--fan is 2 to 5,000"));
        check(|o| o.clients = 500, Some("--clients is 501 to 25,000"));
        check(
            |o| {
                o.protocol = Protocol::V5;
                o.brokers.peers = vec![MqttPeer::RabbitMq];
            },
            Some("--peer rabbitmq speaks 3.1.1, and --protocol is 5"),
        );
    }

    #[test]
    fn a_foreign_broker_has_the_cases_of_its_url() {
        let mut options = usual::<MqttOptions>();
        assert_eq!(options.cases(), Case::ALL);
        options.brokers.server.url = Some("mqtt://127.0.0.1".parse().unwrap());
        assert!(options.check().is_ok());
        let left_out = |case: &&Case| !options.cases().contains(case);
        let missing: Vec<_> = Case::ALL.iter().filter(left_out).collect();
        assert_eq!(missing, [&Case::ConnectionsTls, &Case::Idle]);
        options.cases = vec![Case::Idle];
        let error = options.check().unwrap_err().to_string();
        assert!(error.contains("needs --pid and --runs 1"), "{error}");
        options.brokers.server.pids = vec![1];
        options.common.runs = 1;
        assert!(options.check().is_ok());
    }
}
