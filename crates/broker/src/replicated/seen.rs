//! The status of a replicated vhost for operators.

use std::sync::Arc;

crosstie_collections::named! {
    /// A node's role towards a vhost.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum Role {
        /// No NATS server is connected.
        #[default]
        Detached = "detached",
        Standby = "standby",
        Claiming = "claiming",
        Owner = "owner",
    }
}

/// The status for operators.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    pub role: Role,
    /// The connected NATS server.
    pub server: String,
    pub epoch: u64,
    pub sequence: u64,
    /// The log's end according to its owner.
    pub end: u64,
    pub log_bytes: u64,
    pub live_bytes: u64,
    pub memory_bytes: u64,
    /// Bytes that wait for the log.
    pub waiting_bytes: u64,
    pub appends: u64,
    /// Total duration of all appends, in microseconds.
    pub append_us: u64,
    pub resynchronizations: u64,
    /// This node owns the vhost, and its log accepts nothing.
    pub is_log_refusing: bool,
    /// Number of terms that this node has begun.
    pub takeovers: u64,
    /// The other nodes that cannot read a log with settings: those of earlier versions.
    pub(crate) elders: Vec<Arc<str>>,
    /// Why the vhost has no owner, or is at risk of loss.
    pub alarm: Option<String>,
}
