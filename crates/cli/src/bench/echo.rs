//! `crosstie bench echo`.

use std::process::ExitCode;

use crosstie_bench::{EchoOptions, Shape, Url, echo};

use super::handshake::ComparisonArguments;
use super::stop::{ended, stop_at_a_signal};

/// Our testee, the smallest server that can answer, and peers take turns; every echo is checked.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Somebody else's server in place of our testee: ws://HOST:PORT.
    #[arg(value_name = "URL", conflicts_with = "url")]
    target: Option<Url>,
    #[arg(long, default_value_t = 32, value_name = "N")]
    connections: usize,
    /// Messages in flight on each connection.
    #[arg(long, default_value_t = 16, value_name = "N")]
    outstanding: usize,
    /// Bytes of each message.
    #[arg(long, default_value_t = 64, value_name = "BYTES")]
    payload: usize,
    /// Text messages instead of binary ones.
    #[arg(long)]
    text: bool,
    /// Seconds that a server may take for an answer.
    #[arg(long, default_value_t = 5.0, value_name = "SECONDS")]
    timeout: f64,
    #[command(flatten)]
    comparison: ComparisonArguments,
}

pub(crate) fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let stop = stop_at_a_signal()?;
    let (common, mut servers) = arguments.comparison.options(&stop)?;
    servers.url = servers.url.or(arguments.target);
    let options = EchoOptions {
        common,
        servers,
        connections: arguments.connections,
        outstanding: arguments.outstanding,
        shape: Shape {
            payload_bytes: arguments.payload,
            is_text: arguments.text,
        },
        timeout_s: arguments.timeout,
    };
    Ok(ended(&stop, echo(options)?.is_valid()))
}
