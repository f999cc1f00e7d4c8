//! Why something was not started, or not stopped.

use std::fmt;
use std::io;

/// Why a part of a router was not started; nothing of it runs.
#[derive(Debug)]
pub struct StartError {
    /// What was being started, of which worker, and where.
    pub what: String,
    pub fault: StartFault,
}

/// What stood in the way of a start.
#[derive(Debug)]
#[non_exhaustive]
pub enum StartFault {
    /// There is one of that name.
    AlreadyRunning,
    /// It belongs to something that does not run: a realm, a router that tells of itself.
    NoSuch(String),
    /// The router is being stopped.
    Stopping,
    /// A socket, a file, a thread.
    Io(io::Error),
}

/// What was to be stopped does not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StopError {
    /// What was to be stopped, and of which worker.
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
