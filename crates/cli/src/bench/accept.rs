//! `crosstie bench accept`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use crosstie_bench::accept::{AcceptOptions, Hold, accept};
use crosstie_bench::stream::address::Address;

use super::build;
use super::network::NetworkArguments;
use super::stop::{ended, stop_at_a_signal};
use crate::wamp_arguments::duration;

/// Starts a testee of several processes, and as many clients with addresses of their own.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Connections to open and hold.
    #[arg(long, default_value_t = 60_000, value_name = "N")]
    connections: usize,
    /// Connections that are begun at once.
    #[arg(long, default_value_t = 1_000, value_name = "N")]
    batch: usize,
    /// From the end of one batch to the next: 600ms, 0.6s, 0.
    #[arg(long, default_value = "600ms", value_parser = duration, value_name = "TIME")]
    delay: Duration,
    /// Hold the connections when all is done, until return is pressed, or for a time: 10s.
    #[arg(
        long,
        num_args = 0..=1,
        default_missing_value = UNTIL_RETURN,
        value_parser = hold,
        value_name = "TIME"
    )]
    hold: Option<Hold>,
    /// Do not send a byte on every connection.
    #[arg(long)]
    no_echo: bool,
    /// Processes of the testee [default: as many as the limit of descriptors asks for].
    #[arg(long, value_name = "N")]
    workers: Option<usize>,
    /// Client processes, each with a loopback address of its own [default: likewise].
    #[arg(long, value_name = "N")]
    clients: Option<usize>,
    /// Somebody else's server instead of the testee: tcp://HOST:PORT or unix://PATH.
    #[arg(long, value_name = "ADDRESS")]
    connect: Option<Address>,
    /// A process of that server, for its processor time and memory; may be repeated.
    #[arg(long = "server-pid", value_name = "PID", requires = "connect")]
    server_pids: Vec<u32>,
    /// Afterwards the same with a minimal epoll server of as many processes.
    #[arg(long)]
    floor: bool,
    #[command(flatten)]
    network: NetworkArguments,
    /// Write what was found to this file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// `--hold` without a time.
const UNTIL_RETURN: &str = "return";

pub(crate) fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    super::check_results_file(arguments.json.as_deref())?;
    let stop = stop_at_a_signal()?;
    let options = AcceptOptions {
        build: build(),
        connections: arguments.connections,
        batch: arguments.batch,
        delay: arguments.delay,
        echo: !arguments.no_echo,
        hold: arguments.hold,
        workers: arguments.workers,
        clients: arguments.clients,
        connect: arguments.connect,
        server_pids: arguments.server_pids,
        floor: arguments.floor,
        network: arguments.network.options(),
        json: arguments.json,
        stop: stop.clone(),
        ..AcceptOptions::default()
    };
    Ok(ended(&stop, accept(options)?.is_valid()))
}

fn hold(text: &str) -> anyhow::Result<Hold> {
    match text {
        UNTIL_RETURN => Ok(Hold::UntilReturn),
        time => Ok(Hold::For(duration(time)?)),
    }
}
