//! SIGINT and SIGTERM, as what ends a command in good order.

use anyhow::Context;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// From its making on a signal does not kill the process; it waits to be asked for.
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    /// Needs a tokio context.
    pub(crate) fn catch() -> anyhow::Result<Self> {
        let interrupt = signal(SignalKind::interrupt()).context("cannot catch SIGINT")?;
        let terminate = signal(SignalKind::terminate()).context("cannot catch SIGTERM")?;
        Ok(Self {
            interrupt,
            terminate,
        })
    }

    /// The next signal's name.
    pub(crate) async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.interrupt.recv() => "SIGINT",
            _ = self.terminate.recv() => "SIGTERM",
        }
    }
}
