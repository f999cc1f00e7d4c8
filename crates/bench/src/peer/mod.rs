//! Live peers: other routers that are started, measured exactly as ours is, and stopped.

pub(crate) mod autobahn;
pub(crate) mod crossbar;
pub(crate) mod rabbitmq;

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use crate::error::BenchError;
use crate::network::Network;
use crate::subject::{Case, ParseError, ServerProcess, Target};

/// A router that the bench knows how to start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    /// Crossbar.io, found on `PATH`.
    Crossbar,
}

impl Peer {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Crossbar => "crossbar",
        }
    }

    pub(crate) fn installation(self) -> &'static str {
        match self {
            Self::Crossbar => "pip install crossbar",
        }
    }

    /// Starts it for these cases on the servers' side of a network, in a directory of its own;
    /// `None` where it is not installed.
    pub(crate) fn start(
        self,
        cases: &[Case],
        directory: &Path,
        executable: &Path,
        network: &Network,
    ) -> Result<Option<StartedPeer>, BenchError> {
        match self {
            Self::Crossbar => crossbar::start(cases, directory, executable, network),
        }
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Peer {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        match text {
            "crossbar" => Ok(Self::Crossbar),
            _ => Err(ParseError::new(
                text,
                "the peer that can be started is crossbar",
            )),
        }
    }
}

/// A running peer.
pub(crate) struct StartedPeer {
    pub version: String,
    /// The process that was started; the others are its descendants.
    pub process: ServerProcess,
    pub targets: Vec<(Case, Target)>,
}
