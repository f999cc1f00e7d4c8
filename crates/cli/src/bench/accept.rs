//! `crosstie bench accept`.

use std::process::ExitCode;
use std::time::Duration;

use crosstie_bench::{AcceptOptions, Address, Common, Hold, accept};

use super::common::{FileArguments, Server, SubjectArguments};
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
    #[arg(long, alias = "batch", default_value_t = 1_000, value_name = "N")]
    at_once: usize,
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
    #[command(flatten)]
    server: SubjectArguments<Address>,
    /// Afterwards the same with a minimal epoll server of as many processes.
    #[arg(long)]
    floor: bool,
    #[command(flatten)]
    network: NetworkArguments,
    #[command(flatten)]
    file: FileArguments,
}

/// `--hold` without a time.
const UNTIL_RETURN: &str = "return";

impl Server for Address {
    const WHAT: &'static str = "server instead of the testee: tcp://HOST:PORT or unix://PATH";
}

pub(crate) fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let stop = stop_at_a_signal()?;
    let SubjectArguments { url, pids } = arguments.server;
    let options = AcceptOptions {
        common: Common {
            pids,
            network: arguments.network.options(),
            ..arguments
                .file
                .common(AcceptOptions::default().common, &stop)?
        },
        connections: arguments.connections,
        batch: arguments.at_once,
        delay: arguments.delay,
        echo: !arguments.no_echo,
        hold: arguments.hold,
        workers: arguments.workers,
        clients: arguments.clients,
        url,
        floor: arguments.floor,
    };
    Ok(ended(&stop, accept(options)?.is_valid()))
}

fn hold(text: &str) -> anyhow::Result<Hold> {
    match text {
        UNTIL_RETURN => Ok(Hold::UntilReturn),
        time => Ok(Hold::For(duration(time)?)),
    }
}
