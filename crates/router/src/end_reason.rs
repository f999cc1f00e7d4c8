//! Why sessions end: a word for the log and the metrics.

/// Why a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EndReason {
    /// The client said GOODBYE.
    Goodbye,
    /// The client said ABORT.
    Aborted,
    /// The client closed its connection without GOODBYE.
    Closed,
    /// The connection failed: it was reset, or its other end is not there any more.
    Lost,
    /// The client broke the protocol.
    Violation,
    /// No answer came to a ping, or to a GOODBYE.
    Silent,
    /// The client took nothing, or next to nothing, of what waited for it.
    Stalled,
    /// A message of the client's came too slowly.
    Slow,
    /// An answer found the session's queue full.
    QueueFull,
    /// The bound of all memory was reached, and its client owed the most.
    Debtor,
    /// An operator ended it.
    Killed,
    RoleStopped,
    RealmStopped,
    /// The router, or the transport that the client came by, was stopped.
    Shutdown,
}

impl EndReason {
    /// In the order of their numbers.
    pub(crate) const ALL: [Self; 14] = [
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

    /// In one word.
    pub(crate) fn name(self) -> &'static str {
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
