//! Reasons for the end of sessions, with words for the log and the metrics.

crosstie_collections::named! {
    /// Why a session ended.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum EndReason {
        /// The client sent GOODBYE.
        Goodbye = "goodbye",
        /// The client sent ABORT.
        Aborted = "aborted",
        /// The client closed its connection without GOODBYE.
        Closed = "closed",
        /// The connection failed: it was reset, or its peer is gone.
        Lost = "lost",
        /// The client violated the protocol.
        Violation = "violation",
        /// A ping or a GOODBYE was not answered.
        Silent = "silent",
        /// The client read nothing, or too little, of its queued output.
        Stalled = "stalled",
        /// A message of the client arrived too slowly.
        Slow = "slow",
        /// An answer did not fit into the session's queue.
        QueueFull = "queue_full",
        /// All memory for clients was in use, and this client used the most.
        Debtor = "debtor",
        /// An operator closed the session.
        Killed = "killed",
        RoleStopped = "role_stopped",
        RealmStopped = "realm_stopped",
        /// The router, or the client's transport, was stopped.
        Shutdown = "shutdown",
    }
}
