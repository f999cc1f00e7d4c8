//! Links between a realm and one of another router.

use std::time::Duration;

use super::{RLink, Serializer};

/// The transport to the remote router.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RLinkTransport {
    pub endpoint: RLinkEndpoint,
    /// The request of a WebSocket; none for RawSocket.
    pub request: Option<RLinkRequest>,
    /// Offered in this order; RawSocket uses the first.
    pub serializers: Vec<Serializer>,
    pub connect_timeout: Duration,
    pub ping_interval: Option<Duration>,
    pub message_bytes_max: usize,
}

impl RLinkTransport {
    /// The transport of a link with an error in its own.
    pub(crate) fn nowhere() -> Self {
        Self {
            endpoint: RLinkEndpoint::Unix {
                path: String::new(),
            },
            request: None,
            serializers: Vec::new(),
            connect_timeout: Duration::ZERO,
            ping_interval: None,
            message_bytes_max: 0,
        }
    }
}

/// Address of the remote router.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RLinkEndpoint {
    Tcp {
        host: String,
        port: u16,
        /// The only IP version to use, if given.
        version: Option<u8>,
        tls: Option<RLinkTls>,
    },
    Unix {
        path: String,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RLinkTls {
    /// The name that the certificate must have.
    pub hostname: String,
    /// If empty, the system's authorities.
    pub ca_certificates: Vec<String>,
    /// The link's client certificate and its key.
    pub certificate: Option<(String, String)>,
}

/// The request that opens a WebSocket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RLinkRequest {
    pub host: String,
    pub target: String,
}

/// The authentication method of a link.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum RLinkAuth {
    /// Cryptosign, with the node's key.
    NodeKey,
    Anonymous,
    Ticket {
        ticket: String,
    },
    WampCra {
        secret: String,
    },
    Scram {
        password: String,
    },
    Cryptosign {
        /// In hexadecimal digits.
        privkey: String,
    },
}

impl RLinkAuth {
    /// The method's name.
    pub fn method(&self) -> &'static str {
        match self {
            Self::NodeKey | Self::Cryptosign { .. } => "cryptosign",
            Self::Anonymous => "anonymous",
            Self::Ticket { .. } => "ticket",
            Self::WampCra { .. } => "wampcra",
            Self::Scram { .. } => "scram",
        }
    }
}

/// Without its secrets.
impl std::fmt::Debug for RLinkAuth {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.method())
    }
}

impl std::fmt::Debug for RLink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RLink")
            .field("id", &self.id)
            .field("realm", &self.realm)
            .field("transport", &self.transport)
            .field("auth", &self.auth)
            .finish_non_exhaustive()
    }
}
