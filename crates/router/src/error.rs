//! Errors of starting and stopping parts of a router.

use std::fmt;
use std::io;

/// Why a part of a router was not started; nothing of the part runs.
#[derive(Debug)]
pub struct StartError {
    /// The part, its worker, and its address.
    pub what: String,
    pub fault: StartFault,
}

/// The obstacle of a start.
#[derive(Debug)]
#[non_exhaustive]
pub enum StartFault {
    /// The name is in use.
    AlreadyRunning,
    /// A part that it needs does not run, such as its realm.
    NoSuch(String),
    /// The router is being stopped.
    Stopping,
    /// The router drains.
    Draining,
    /// An error of a socket, a file or a thread.
    Io(io::Error),
}

/// The part to be stopped does not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StopError {
    /// The part, and its worker.
    pub what: String,
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot start {}: {}", self.what, self.fault)
    }
}

impl std::error::Error for StartError {}

impl fmt::Display for StartFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AlreadyRunning => f.write_str("one of that name runs already"),
            Self::NoSuch(what) => write!(f, "there is no {what}"),
            Self::Stopping => f.write_str("the router is being stopped"),
            Self::Draining => f.write_str("the node drains (`crosstie undrain` ends that)"),
            Self::Io(e) => e.fmt(f),
        }
    }
}

impl fmt::Display for StopError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot stop {}: none of that name runs", self.what)
    }
}

impl std::error::Error for StopError {}
