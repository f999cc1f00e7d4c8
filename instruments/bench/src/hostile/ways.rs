//! How a router or broker is reached: what it speaks, and where.

use std::net::SocketAddr;

use crosstie_wamp::Serializer;
use serde::{Deserialize, Serialize};

use crate::broker::Broker;
use crate::subject::{Target, Transport};

/// Everything that an attacker or the witness may use.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ways {
    /// WAMP: one of each transport and serializer that is spoken.
    pub(super) targets: Vec<Target>,
    pub(super) broker: Option<Broker>,
    pub(super) pages: Option<Pages>,
    /// Where web services are that attacks know.
    pub(super) web: Option<Pages>,
}

/// Where `/health` and `/metrics` are.
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

    /// What costs a client least.
    pub(super) fn any_wamp(&self) -> Option<&Target> {
        self.wamp(Transport::RawSocket, Serializer::MsgPack)
            .or_else(|| self.targets.first())
    }
}
