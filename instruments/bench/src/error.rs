//! The reasons why a bench could not run at all. A round that does not count is not an error, but a row with its
//! reason.

use std::io;
use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    #[error("{0}")]
    Io(#[from] io::Error),
    /// Options that contradict each other, or that this machine cannot meet.
    #[error("{0}")]
    Options(String),
    #[error("{name} could not be started: {why}")]
    Server { name: String, why: String },
    #[error("a worker of the bench: {0}")]
    Worker(#[from] crate::process::worker::WorkerError),
    /// Idle sessions could not be opened, or did not stay.
    #[error("a holder of idle sessions: {0}")]
    Holder(String),
    #[error("{path}: {source}", path = path.display())]
    Report { path: PathBuf, source: io::Error },
}

impl BenchError {
    /// An error if the server ended while it was measured.
    pub(crate) fn check_alive(name: &str, is_alive: bool) -> Result<(), Self> {
        match is_alive {
            true => Ok(()),
            false => Err(Self::Server {
                name: name.to_owned(),
                why: "it ended while it was measured".to_owned(),
            }),
        }
    }
}
