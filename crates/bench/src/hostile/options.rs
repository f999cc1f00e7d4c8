//! What can be asked of `bench hostile`, and what cannot be had together.

use std::time::Duration;

use super::catalogue::{ATTACKS, Attack, AttackName};
use crate::broker::Broker;
use crate::error::BenchError;
use crate::frame::Common;
use crate::frame::options::require;
use crate::peer::Peer;
use crate::peer::rabbitmq::BrokerPeer;
use crate::subject::target::Url;

/// Everything that can be asked of the bench.
#[derive(Clone, Debug)]
pub struct HostileOptions {
    /// There is one round of each attack; the processes are those of router and broker.
    pub common: Common,
    /// By default all.
    pub attacks: Vec<AttackName>,
    /// All sizes times this.
    pub scale: f64,
    /// Consumers of the attack of that name, before they are scaled.
    pub consumers: usize,
    /// How long an attack may take, in seconds.
    pub limit_seconds: f64,
    /// How long the witness goes on after an attack; without one, how long it runs in all.
    pub after_seconds: f64,
    /// How long one of the witness's operations may wait before it counts as lost.
    pub patience_seconds: f64,
    /// Somebody else's WAMP router, in place of ours.
    pub url: Option<Url>,
    pub realm: String,
    /// Somebody else's broker, in place of ours.
    pub amqp_url: Option<Broker>,
    pub peers: Vec<HostilePeer>,
}

/// Who can be started beside our own node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostilePeer {
    Wamp(Peer),
    Amqp(BrokerPeer),
}

impl std::str::FromStr for HostilePeer {
    type Err = crate::subject::ParseError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wamp = text.parse().map(Self::Wamp);
        wamp.or_else(|_| text.parse().map(Self::Amqp))
            .map_err(|_: Self::Err| Self::Err {
                came: text.to_owned(),
                expected: "the peers that can be started are crossbar and rabbitmq",
            })
    }
}

impl HostileOptions {
    /// Refuses what makes no sense, or would take the machine down.
    pub(super) fn check(&self) -> Result<(), BenchError> {
        require(
            self.scale > 0.0 && self.scale <= 100.0,
            "--scale is above 0, and at most 100",
        )?;
        require(
            (1..=20_000_000).contains(&self.consumers),
            "--consumers is 1 to 20,000,000",
        )?;
        require(
            (0.1..=3_600.0).contains(&self.limit_seconds),
            "--limit is 0.1 to 3,600",
        )?;
        require(
            (0.1..=600.0).contains(&self.after_seconds),
            "--after is 0.1 to 600",
        )?;
        require(
            (1.0..=3_600.0).contains(&self.patience_seconds),
            "--patience is 1 to 3,600",
        )
    }

    /// Whether somebody else's router or broker is attacked.
    pub(super) fn is_foreign(&self) -> bool {
        self.url.is_some() || self.amqp_url.is_some()
    }

    pub(super) fn attacks(&self) -> Vec<&'static Attack> {
        let is_wanted = |attack: &&Attack| {
            self.attacks.is_empty() || self.attacks.iter().any(|name| name.0 == attack.name)
        };
        ATTACKS.iter().filter(is_wanted).collect()
    }

    pub(super) fn limit(&self) -> Duration {
        Duration::from_secs_f64(self.limit_seconds)
    }

    pub(super) fn after(&self) -> Duration {
        Duration::from_secs_f64(self.after_seconds)
    }

    pub(super) fn patience(&self) -> Duration {
        Duration::from_secs_f64(self.patience_seconds)
    }
}
