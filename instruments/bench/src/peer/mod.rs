//! Live peers: other routers that are started, measured exactly like ours, and stopped.

pub(crate) mod autobahn;
pub(crate) mod crossbar;
pub(crate) mod mochi;
pub(crate) mod mosquitto;
pub(crate) mod nats;
pub(crate) mod nginx;
pub(crate) mod rabbitmq;

use std::path::Path;

use crate::error::BenchError;
use crate::network::Network;
use crate::subject::{Case, ServerProcess, Target, names};

/// A router that the bench can start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    /// Crossbar.io, found on `PATH`.
    Crossbar,
}

impl Peer {
    pub(crate) fn installation(self) -> &'static str {
        match self {
            Self::Crossbar => "pip install crossbar",
        }
    }

    /// A note for a reader: its version, or how to get it.
    pub(crate) fn note(self, version: Option<&str>) -> String {
        match version {
            Some(version) => format!("{self}: {version}"),
            None => format!(
                "{self}: absent from PATH; to get it: {}",
                self.installation()
            ),
        }
    }

    /// Starts it for these cases on the servers' side of a network, in a directory of its own; `None` if it is not
    /// installed.
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

names! {
    Peer { Crossbar = "crossbar" }
    "the peer that can be started is crossbar"
}

/// A running peer.
pub(crate) struct StartedPeer {
    pub version: String,
    /// The process that was started; the others are its descendants.
    pub process: ServerProcess,
    pub targets: Vec<(Case, Target)>,
}
