//! The status of a replicated vhost for operators.

/// A node's role towards a vhost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Role {
    /// No NATS server is connected.
    #[default]
    Detached,
    Standby,
    Claiming,
    Owner,
}

/// The status for operators.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    pub(crate) role: Role,
    /// The connected NATS server.
    pub(crate) server: String,
    pub(crate) epoch: u64,
    pub(crate) sequence: u64,
    /// The log's end according to its owner.
    pub(crate) end: u64,
    pub(crate) log_bytes: u64,
    pub(crate) live_bytes: u64,
    pub(crate) memory_bytes: u64,
    /// Bytes that wait for the log.
    pub(crate) waiting_bytes: u64,
    pub(crate) appends: u64,
    /// Total duration of all appends, in microseconds.
    pub(crate) append_us: u64,
    pub(crate) resynchronizations: u64,
    /// This node owns the vhost, and its log accepts nothing.
    pub(crate) is_log_refusing: bool,
    /// Number of terms that this node has begun.
    pub(crate) takeovers: u64,
    /// Why the vhost has no owner, or is at risk of loss.
    pub(crate) alarm: Option<String>,
}

impl Role {
    pub(crate) const ALL: [Self; 4] = [Self::Detached, Self::Standby, Self::Claiming, Self::Owner];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Detached => "detached",
            Self::Standby => "standby",
            Self::Claiming => "claiming",
            Self::Owner => "owner",
        }
    }
}
