//! What operators see of a replicated vhost.

/// What a node is to a vhost, in a word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Role {
    /// No server of NATS is reached.
    #[default]
    Detached,
    Standby,
    Claiming,
    Owner,
}

/// What operators see.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    pub(crate) role: Role,
    /// The server that the node is on.
    pub(crate) server: String,
    pub(crate) epoch: u64,
    pub(crate) sequence: u64,
    /// How far the log is, as its owner says.
    pub(crate) end: u64,
    pub(crate) log_bytes: u64,
    pub(crate) live_bytes: u64,
    pub(crate) memory_bytes: u64,
    /// Bytes that wait for the log.
    pub(crate) waiting_bytes: u64,
    pub(crate) appends: u64,
    /// All appends together, in microseconds.
    pub(crate) append_us: u64,
    pub(crate) resynchronizations: u64,
    /// This node owns it, and its log takes nothing.
    pub(crate) is_log_refusing: bool,
    /// Terms that this node has begun.
    pub(crate) takeovers: u64,
    /// Why the node does not own the vhost though nobody else does, or why it is not sure to be kept.
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
