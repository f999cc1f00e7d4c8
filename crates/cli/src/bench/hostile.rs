//! `crosstie bench hostile`.

use std::process::ExitCode;

use crosstie_bench::{
    AttackName, Broker, Common, HostileOptions, HostilePeer, REALM, Url, hostile, hostile_attacks,
};

use super::common::FileArguments;
use super::stop::{ended, stop_at_a_signal};

/// Starts a node for each attack, and beside the attacker a witness: well-behaved sessions whose waits
/// are what counts.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// One attack; may be repeated [default: all].
    #[arg(long = "attack", value_name = "NAME")]
    attacks: Vec<AttackName>,
    /// Only print the attacks that there are.
    #[arg(long)]
    list: bool,
    /// All sizes times this.
    #[arg(long, default_value_t = 1.0, value_name = "FACTOR")]
    scale: f64,
    /// Consumers of the attack `consumers`.
    #[arg(long, default_value_t = 200_000, value_name = "N")]
    consumers: usize,
    /// Seconds that an attack may take.
    #[arg(long, default_value_t = 20.0, value_name = "SECONDS")]
    limit: f64,
    /// Seconds that the witness goes on after an attack, and those that it runs alone.
    #[arg(long, default_value_t = 3.0, value_name = "SECONDS")]
    after: f64,
    /// Seconds after which one of the witness's operations counts as lost.
    #[arg(long, default_value_t = 180.0, value_name = "SECONDS")]
    patience: f64,
    /// Somebody else's WAMP router instead of our node: ws://HOST:PORT/PATH or rs://HOST:PORT.
    #[arg(long, visible_alias = "router", value_name = "URL")]
    url: Option<Url>,
    /// The realm that is joined there.
    #[arg(long, default_value = REALM)]
    realm: String,
    /// Somebody else's broker instead of our node: rabbit://USER:PASSWORD@HOST:PORT/VHOST.
    #[arg(long, value_name = "URL")]
    amqp_url: Option<Broker>,
    /// A process of either, for its processor time and memory; may be repeated.
    #[arg(long = "pid", value_name = "PID")]
    pids: Vec<u32>,
    /// crossbar or rabbitmq: start it and do the same to it; may be repeated.
    #[arg(long = "peer", value_name = "PEER")]
    peers: Vec<HostilePeer>,
    #[command(flatten)]
    file: FileArguments,
}

pub(crate) fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    if arguments.list {
        hostile_attacks()?;
        return Ok(ExitCode::SUCCESS);
    }
    let stop = stop_at_a_signal()?;
    let options = HostileOptions {
        common: Common {
            pids: arguments.pids,
            runs: 1,
            ..arguments.file.common(Common::default(), &stop)?
        },
        attacks: arguments.attacks,
        scale: arguments.scale,
        consumers: arguments.consumers,
        limit_seconds: arguments.limit,
        after_seconds: arguments.after,
        patience_seconds: arguments.patience,
        url: arguments.url,
        realm: arguments.realm,
        amqp_url: arguments.amqp_url,
        peers: arguments.peers,
    };
    Ok(ended(&stop, hostile(options)?.is_valid()))
}
