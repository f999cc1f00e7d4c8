//! The options of `bench accept`.

use std::time::Duration;

use crate::error::BenchError;
use crate::frame::{
    Common, FileOptions, Host, Server, ServerOptions, duration, require, require_within,
};
use crate::network::NetworkOptions;
use crate::stream::address::Address;
use crate::subject::ParseError;

/// Start a testee of several processes, and as many clients with addresses of their own.
#[derive(Clone, Debug, clap::Args)]
pub struct AcceptOptions {
    /// There is one round.
    #[arg(skip)]
    pub(super) common: Common,
    /// Connections to open and hold.
    #[arg(long, default_value_t = 60_000, value_name = "N")]
    pub(super) connections: usize,
    /// Connections in a batch.
    #[arg(
        long = "at-once",
        alias = "batch",
        default_value_t = 1_000,
        value_name = "N"
    )]
    pub(super) batch: usize,
    /// Pause between two batches: 600ms, 0.6s, 0.
    #[arg(long, default_value = "600ms", value_parser = duration, value_name = "TIME")]
    pub(super) delay: Duration,
    /// Hold the connections at the end until return is pressed, or for a time: 10s.
    #[arg(
        long,
        num_args = 0..=1,
        default_missing_value = UNTIL_RETURN,
        value_parser = hold,
        value_name = "TIME"
    )]
    pub(super) hold: Option<Hold>,
    /// Do not send a byte on every connection.
    #[arg(long)]
    pub(super) no_echo: bool,
    /// Processes of the testee [default: as many as the limit of descriptors requires].
    #[arg(long, value_name = "N")]
    pub(super) workers: Option<usize>,
    /// Client processes, each with a loopback address of its own [default: likewise].
    #[arg(long, value_name = "N")]
    pub(super) clients: Option<usize>,
    #[command(flatten)]
    pub(super) server: ServerOptions<Address>,
    /// Repeat with a minimal epoll server of as many processes.
    #[arg(long)]
    pub(super) floor: bool,
    #[command(flatten)]
    network: NetworkOptions,
    #[command(flatten)]
    file: FileOptions,
}

/// `--hold` without a time.
const UNTIL_RETURN: &str = "return";

fn hold(text: &str) -> Result<Hold, ParseError> {
    match text {
        UNTIL_RETURN => Ok(Hold::UntilReturn),
        time => Ok(Hold::For(duration(time)?)),
    }
}

impl Server for Address {
    const WHAT: &'static str = "server instead of the testee: tcp://HOST:PORT or unix://PATH";
}

/// How long connections are held at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hold {
    /// Until a line on standard input, its end, or a stop.
    UntilReturn,
    For(Duration),
}

impl AcceptOptions {
    pub(super) fn on(mut self, host: Host) -> Result<Self, BenchError> {
        self.common = Common {
            pids: self.server.pids.clone(),
            is_foreign: self.server.url.is_some(),
            network: self.network.clone(),
            runs: 1,
            ..self.file.common(host)?
        };
        self.check()?;
        Ok(self)
    }

    /// Refuses invalid options, and loads that would overwhelm the machine.
    fn check(&self) -> Result<(), BenchError> {
        require_within("--connections", &self.connections, 1..=5_000_000)?;
        require(self.batch > 0, "--at-once is at least 1")?;
        require(
            self.delay <= Duration::from_secs(60),
            "--delay is at most 60 s",
        )?;
        require(
            self.workers
                .is_none_or(|workers| (1..=1_024).contains(&workers)),
            "--workers is 1 to 1,024",
        )?;
        require(
            self.clients
                .is_none_or(|clients| (1..=200).contains(&clients)),
            "--clients is 1 to 200",
        )?;
        if self.server.url.is_some() {
            require(
                self.workers.is_none(),
                "--workers are the testee's own, not for a --url",
            )?;
            require(
                !self.floor,
                "--floor goes with the testee, not with a --url",
            )?;
        }
        Ok(())
    }

    /// Whether the load is the document's.
    pub(super) fn is_the_documents(&self) -> bool {
        (self.connections, self.batch, self.delay.as_millis()) == (60_000, 1_000, 600)
    }
}
