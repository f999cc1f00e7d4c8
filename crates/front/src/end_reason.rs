//! Reasons for the end of sessions, with words for the log and the metrics.

/// Why a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndReason {
    /// The client sent GOODBYE.
    Goodbye,
    /// The client sent ABORT.
    Aborted,
    /// The client closed its connection without GOODBYE.
    Closed,
    /// The connection failed: it was reset, or its peer is gone.
    Lost,
    /// The client violated the protocol.
    Violation,
    /// A ping or a GOODBYE was not answered.
    Silent,
    /// The client read nothing, or too little, of its queued output.
    Stalled,
    /// A message of the client arrived too slowly.
    Slow,
    /// An answer did not fit into the session's queue.
    QueueFull,
    /// All memory for clients was in use, and this client used the most.
    Debtor,
    /// An operator closed the session.
    Killed,
    RoleStopped,
    RealmStopped,
    /// The router, or the client's transport, was stopped.
    Shutdown,
}

impl EndReason {
    /// In the order of their numbers.
    pub const ALL: [Self; 14] = [
        Self::Goodbye,
        Self::Aborted,
        Self::Closed,
        Self::Lost,
        Self::Violation,
        Self::Silent,
        Self::Stalled,
        Self::Slow,
        Self::QueueFull,
        Self::Debtor,
        Self::Killed,
        Self::RoleStopped,
        Self::RealmStopped,
        Self::Shutdown,
    ];

    /// A one-word name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Goodbye => "goodbye",
            Self::Aborted => "aborted",
            Self::Closed => "closed",
            Self::Lost => "lost",
            Self::Violation => "violation",
            Self::Silent => "silent",
            Self::Stalled => "stalled",
            Self::Slow => "slow",
            Self::QueueFull => "queue_full",
            Self::Debtor => "debtor",
            Self::Killed => "killed",
            Self::RoleStopped => "role_stopped",
            Self::RealmStopped => "realm_stopped",
            Self::Shutdown => "shutdown",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_in_the_order_of_the_numbers() {
        for (number, leaving) in EndReason::ALL.into_iter().enumerate() {
            assert_eq!(leaving as usize, number);
        }
    }
}
