//! Vhosts that survive their machine.

use super::{NatsUrl, Tls};

/// How a vhost is kept by several machines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replicated {
    /// Never empty.
    pub urls: Vec<NatsUrl>,
    /// Relative to the node's directory, as the next.
    pub credentials: Option<String>,
    pub ca_certificates: Vec<String>,
    /// 1 or 3.
    pub replicas: u8,
    /// The node reads along while another one owns the vhost.
    pub is_standby_warm: bool,
    /// Where other nodes reach this one.
    pub address: Option<String>,
    /// Both sides of connections between nodes; they are plain where there is none.
    pub tls: Option<Tls>,
    pub elsewhere: Elsewhere,
    pub is_kept_locally: bool,
    /// URLs of the servers' monitoring.
    pub monitor: Vec<String>,
}

/// What becomes of clients of a vhost that another node owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Elsewhere {
    Refuse,
    /// They are passed on to that node.
    Splice,
}
