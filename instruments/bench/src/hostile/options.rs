//! The options of `bench hostile`, and their valid combinations.

use std::time::Duration;

use super::catalogue::{ATTACKS, Attack, AttackName};
use crate::broker::Broker;
use crate::error::BenchError;
use crate::frame::{Common, FileOptions, Host, require, require_within};
use crate::peer::Peer;
use crate::peer::rabbitmq::BrokerPeer;
use crate::subject::{REALM, Url};

/// Start a node for each attack, and beside the attacker a witness: well-behaved sessions whose waiting times are the
/// result.
#[derive(Clone, Debug, clap::Args)]
pub struct HostileOptions {
    /// There is one round of each attack; the processes are those of router and broker.
    #[arg(skip)]
    pub(super) common: Common,
    /// Attack to run; may be repeated [default: all].
    #[arg(long = "attack", value_name = "NAME")]
    attacks: Vec<AttackName>,
    /// List the attacks.
    #[arg(long = "list")]
    pub(super) is_list: bool,
    /// Factor for all sizes.
    #[arg(long, default_value_t = 1.0, value_name = "FACTOR")]
    pub(super) scale: f64,
    /// Consumers of the attack `consumers`.
    #[arg(long, default_value_t = 200_000, value_name = "N")]
    pub(super) consumers: usize,
    /// Maximum seconds of an attack.
    #[arg(long = "limit", default_value_t = 20.0, value_name = "SECONDS")]
    pub(super) limit_seconds: f64,
    /// Seconds that the witness continues after an attack, and that it runs alone.
    #[arg(long = "after", default_value_t = 3.0, value_name = "SECONDS")]
    pub(super) after_seconds: f64,
    /// Seconds after which one of the witness's operations counts as lost.
    #[arg(long = "patience", default_value_t = 180.0, value_name = "SECONDS")]
    pub(super) patience_seconds: f64,
    /// External WAMP router in place of our node: ws://HOST:PORT/PATH or rs://HOST:PORT.
    #[arg(long, visible_alias = "router", value_name = "URL")]
    pub(super) url: Option<Url>,
    /// Realm to join there.
    #[arg(long, default_value = REALM)]
    pub(super) realm: String,
    /// External broker in place of our node: rabbit://USER:PASSWORD@HOST:PORT/VHOST.
    #[arg(long, value_name = "URL")]
    pub(super) amqp_url: Option<Broker>,
    /// Process of either, for its processor time and memory; may be repeated.
    #[arg(long = "pid", value_name = "PID")]
    pids: Vec<u32>,
    /// crossbar or rabbitmq: start it and attack it in the same way; may be repeated.
    #[arg(long = "peer", value_name = "PEER")]
    pub(super) peers: Vec<HostilePeer>,
    #[command(flatten)]
    file: FileOptions,
}

/// The peers that can be started beside our own node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HostilePeer {
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
    pub(super) fn on(mut self, host: Host) -> Result<Self, BenchError> {
        self.common = Common {
            pids: self.pids.clone(),
            is_foreign: self.is_foreign(),
            runs: 1,
            ..self.file.common(host)?
        };
        self.check()?;
        Ok(self)
    }

    /// Refuses invalid options, and loads that would overwhelm the machine.
    fn check(&self) -> Result<(), BenchError> {
        require(
            self.scale > 0.0 && self.scale <= 100.0,
            "--scale is above 0, and at most 100",
        )?;
        require_within("--consumers", &self.consumers, 1..=20_000_000)?;
        require_within("--limit", &self.limit_seconds, 0.1..=3_600.0)?;
        require_within("--after", &self.after_seconds, 0.1..=600.0)?;
        require_within("--patience", &self.patience_seconds, 1.0..=3_600.0)
    }

    /// Whether a foreign router or broker is attacked.
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
