//! What can be asked of `bench accept`.

use std::time::Duration;

use crate::error::BenchError;
use crate::frame::Common;
use crate::frame::options::require;
use crate::stream::address::Address;

/// Everything that can be asked of the bench.
#[derive(Clone, Debug)]
pub struct AcceptOptions {
    /// There is one round.
    pub common: Common,
    pub connections: usize,
    pub batch: usize,
    /// From the last connection of a batch to the first one of the next.
    pub delay: Duration,
    /// Whether to send a byte on every connection when all are there.
    pub echo: bool,
    pub hold: Option<Hold>,
    /// Processes of the testee; by default as many as the limit of descriptors asks for.
    pub workers: Option<usize>,
    /// Client processes; by default the same.
    pub clients: Option<usize>,
    /// Somebody else's server, in place of the testee.
    pub url: Option<Address>,
    /// Measure the floor too.
    pub floor: bool,
}

/// How long connections are held after all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// Until a line on standard input, its end, or a stop.
    UntilReturn,
    For(Duration),
}

impl Default for AcceptOptions {
    fn default() -> Self {
        Self {
            common: Common {
                runs: 1,
                ..Common::default()
            },
            connections: 60_000,
            batch: 1_000,
            delay: Duration::from_millis(600),
            echo: true,
            hold: None,
            workers: None,
            clients: None,
            url: None,
            floor: false,
        }
    }
}

impl AcceptOptions {
    /// Refuses what makes no sense, or would take the machine down.
    pub(super) fn check(&self) -> Result<(), BenchError> {
        require(
            (1..=5_000_000).contains(&self.connections),
            "--connections is 1 to 5,000,000",
        )?;
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
        if self.url.is_some() {
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
