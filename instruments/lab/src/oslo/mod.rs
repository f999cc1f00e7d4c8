//! `crosstie oslo`: the server and the client that measure oslo.messaging's RPC, as native instruments.

mod rpc_client;
mod rpc_server;

use std::process::ExitCode;

use crosstie_oslo::{ConnectionOptions, Target, TransportUrl};

/// Serve and call by oslo.messaging's RPC, over RabbitMQ or this router, without TLS.
#[derive(clap::Subcommand)]
pub(crate) enum Oslo {
    RpcServer(rpc_server::Arguments),
    RpcClient(rpc_client::Arguments),
}

pub(crate) fn run(oslo: Oslo) -> anyhow::Result<ExitCode> {
    match oslo {
        Oslo::RpcServer(arguments) => rpc_server::run(arguments),
        Oslo::RpcClient(arguments) => rpc_client::run(arguments),
    }
}

/// The place where both ends meet.
#[derive(clap::Args)]
struct Place {
    /// Broker, without TLS: rabbit://user:password@host:port/vhost; several hosts, separated by commas, are tried in
    /// turn at the start.
    #[arg(long, default_value = "rabbit://localhost:5672")]
    url: TransportUrl,
    /// Topic of servers and clients.
    #[arg(long, default_value = "my-topic")]
    topic: String,
    /// Exchange of the topic: oslo.messaging's control_exchange.
    #[arg(long, default_value = "my-exchange")]
    exchange: String,
    /// Namespace of the methods [default: none].
    #[arg(long)]
    namespace: Option<String>,
    /// Requested or offered version [default: 1.0].
    #[arg(long, value_name = "VERSION")]
    target_version: Option<String>,
    /// Heartbeat interval, as oslo.messaging's heartbeat_timeout_threshold. A peer that is silent for twice as long is
    /// considered lost. The broker's value applies if less; 0 disables heartbeats.
    #[arg(long, default_value_t = 60, value_name = "SECONDS")]
    heartbeat: u16,
}

impl Place {
    /// The options of its connections, shown to the broker's operators as `name`.
    fn connection_options(&self, name: String) -> ConnectionOptions {
        ConnectionOptions {
            name,
            heartbeat_s: self.heartbeat,
            ..ConnectionOptions::default()
        }
    }

    fn target(&self, server: Option<String>, fanout: bool) -> Target {
        Target {
            exchange: self.exchange.clone(),
            topic: self.topic.clone(),
            server,
            fanout,
            namespace: self.namespace.clone(),
            version: self.target_version.clone(),
        }
    }
}

/// Python's text for a missing value.
fn or_none(text: Option<&str>) -> &str {
    text.unwrap_or("None")
}
