//! Links between a realm and one of another router.

use std::time::Duration;

use super::Serializer;

/// A link.
#[derive(Clone, PartialEq, Eq)]
pub struct RLink {
    pub id: String,
    /// The other router's.
    pub realm: String,
    pub transport: RLinkTransport,
    pub authid: Option<String>,
    pub auth: RLinkAuth,
    /// In its own realm.
    pub role: String,
    pub exclude_authid: Vec<String>,
    pub forward_local_events: bool,
    pub forward_remote_events: bool,
    pub forward_local_invocations: bool,
    pub forward_remote_invocations: bool,
    pub mirrors_max: usize,
    pub calls_max: usize,
    pub queue_bytes_max: usize,
    pub forward_for_max: usize,
    pub reconnect_delay_max: Duration,
}

/// How it connects to the other router.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RLinkTransport {
    pub endpoint: RLinkEndpoint,
    /// Of a WebSocket: what it asks for, and of which host. A RawSocket has none.
    pub request: Option<RLinkRequest>,
    /// Offered in this order; a RawSocket asks for the first.
    pub serializers: Vec<Serializer>,
    pub connect_timeout: Duration,
    pub ping_interval: Option<Duration>,
    pub message_bytes_max: usize,
}

/// Where it connects to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RLinkEndpoint {
    Tcp {
        host: String,
        port: u16,
        /// Of IP, where one alone is to be used.
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
    /// Those that the system trusts where there are none.
    pub ca_certificates: Vec<String>,
    /// The link's own, with its key.
    pub certificate: Option<(String, String)>,
}

/// The request that opens a WebSocket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RLinkRequest {
    pub host: String,
    pub target: String,
}

/// How it proves who it is.
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
