//! `crosstie bench echo`.

use std::process::ExitCode;

use crosstie_bench::echo::{EchoOptions, Shape, echo};
use crosstie_bench::subject::target::Url;

use super::handshake::ComparisonArguments;
use super::stop::{ended, stop_at_a_signal};

/// Our testee, the smallest server that can answer, and peers take turns; every echo is checked.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Somebody else's server in place of our testee: ws://HOST:PORT.
    #[arg(value_name = "URL", conflicts_with = "url")]
    server: Option<Url>,
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
    /// Measured seconds of each round.
    #[arg(long, default_value_t = 1.0)]
    seconds: f64,
    /// Seconds that a server may take for an answer.
    #[arg(long, default_value_t = 5.0, value_name = "SECONDS")]
    timeout: f64,
    #[command(flatten)]
    comparison: ComparisonArguments,
}

pub(crate) fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    super::check_results_file(arguments.comparison.json.as_deref())?;
    let stop = stop_at_a_signal()?;
    let mut comparison = arguments.comparison.options(stop.clone());
    comparison.servers.url = comparison.servers.url.or(arguments.server);
    let options = EchoOptions {
        comparison,
        connections: arguments.connections,
        outstanding: arguments.outstanding,
        shape: Shape {
            payload_bytes: arguments.payload,
            is_text: arguments.text,
        },
        seconds: arguments.seconds,
        warm_up_seconds: 0.2,
        timeout_s: arguments.timeout,
    };
    Ok(ended(&stop, echo(&options)?))
}
