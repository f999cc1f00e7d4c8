//! Replicated vhosts.

use super::{NatsUrl, NodesTls};

/// The replication of a vhost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replicated {
    /// Never empty.
    pub urls: Vec<NatsUrl>,
    /// Relative to the node's directory, like the next field.
    pub credentials: Option<String>,
    pub ca_certificates: Vec<String>,
    /// 1 or 3.
    pub replicas: u8,
    /// The node follows the journal while another node owns the vhost.
    pub is_standby_warm: bool,
    /// The address at which other nodes reach this node.
    pub address: Option<String>,
    /// TLS of connections between nodes; without it they are plain.
    pub tls: Option<NodesTls>,
    pub elsewhere: Elsewhere,
    pub is_kept_locally: bool,
    /// URLs of the servers' monitoring.
    pub monitor: Vec<String>,
}

/// The handling of clients of a vhost that another node owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Elsewhere {
    Refuse,
    /// Their connections are forwarded to that node.
    Splice,
}
