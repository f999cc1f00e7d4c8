//! The addresses of a router or broker, and their protocols.

use std::net::SocketAddr;

use crosstie_wamp::Serializer;
use serde::{Deserialize, Serialize};

use crate::broker::Broker;
use crate::subject::{Target, Transport};

/// All addresses for an attacker or the witness.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ways {
    /// WAMP: one of each supported transport and serializer.
    pub(super) targets: Vec<Target>,
    pub(super) broker: Option<Broker>,
    pub(super) pages: Option<Pages>,
    /// The web services that attacks know.
    pub(super) web: Option<Pages>,
}

/// The address of `/health` and `/metrics`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Pages {
    pub(super) address: SocketAddr,
    pub(super) host: String,
}

impl Ways {
    pub(super) fn wamp(&self, transport: Transport, serializer: Serializer) -> Option<&Target> {
        self.targets
            .iter()
            .find(|target| target.transport == transport && target.serializer == serializer)
    }

    /// The cheapest one for a client.
    pub(super) fn any_wamp(&self) -> Option<&Target> {
        self.wamp(Transport::RawSocket, Serializer::MsgPack)
            .or_else(|| self.targets.first())
    }
}
