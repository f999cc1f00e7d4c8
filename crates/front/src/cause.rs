//! Causes of closed connections: the party that ended one, the reason, and the key that bounds what led to the end.

use crosstie_transport::{Connection, Ended};

use crate::end_reason::EndReason;

crosstie_collections::named! {
    /// The party that ended a connection.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum By {
        Client = "client",
        Crosstie = "Crosstie",
        /// A person or a program that manages the node.
        Operator = "operator",
        Network = "network",
    }
}

crosstie_collections::named! {
    /// A cause decided by the router, before the connection's reader sees the end.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Cause: text {
        NoRead = "the client does not read its queued output",
        SlowRead = "the client reads its queued output too slowly",
        SlowMessage = "a message of the client arrives too slowly",
        NoHeartbeat = "missed heartbeats from client",
        NoPong = "no answer to a ping",
        NoRequest = "no request came in time",
        NoGoodbye = "no answer to GOODBYE in time",
        NoSession = "no session was opened in time",
        AnswerQueueFull = "an answer found its queue full",
        EventQueueFull = "an event found its queue full",
        Unacknowledged = "it has too many events to acknowledge",
        AllMemory = "all memory for clients is held, most of it for this client",
        AmqpMemory = "holds most of the incomplete messages and open transactions, which are too many",
        SlowContent = "a message stays incomplete",
        CookieLogout = "another session with the same cookie has logged out",
        Undelivered = "an answer could not be delivered",
        Operator = "an operator closed the connection",
        Stop = "the router or its transport stops",
        VhostGone = "the node does not serve the vhost any more",
        NoPacket = "no packet within one and a half times its keep alive",
    }
}

/// The log's facts about the end of a connection or a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    pub reason: EndReason,
    pub by: By,
    /// The configuration key of the limit that was reached.
    pub key: Option<&'static str>,
    pub text: &'static str,
}

impl Cause {
    /// Notes the cause at a connection that is about to be closed. The first cause stays.
    pub fn note(self, connection: &Connection) {
        connection.set_note(self as u8 + 1);
    }

    /// The noted cause, if the connection was closed from here.
    pub fn noted(connection: &Connection) -> Option<Self> {
        let number = usize::from(connection.note()).checked_sub(1)?;
        Self::ALL.get(number).copied()
    }

    fn reason(self) -> EndReason {
        match self {
            Self::NoRead | Self::SlowRead => EndReason::Stalled,
            Self::SlowMessage | Self::SlowContent => EndReason::Slow,
            Self::NoHeartbeat
            | Self::NoPong
            | Self::NoRequest
            | Self::NoPacket
            | Self::NoGoodbye
            | Self::NoSession => EndReason::Silent,
            Self::AnswerQueueFull | Self::EventQueueFull | Self::Unacknowledged => {
                EndReason::QueueFull
            }
            Self::AllMemory | Self::AmqpMemory => EndReason::Debtor,
            Self::Undelivered => EndReason::Lost,
            Self::CookieLogout | Self::Operator => EndReason::Killed,
            Self::Stop | Self::VhostGone => EndReason::Shutdown,
        }
    }

    fn by(self) -> By {
        match self {
            Self::CookieLogout => By::Client,
            Self::VhostGone => By::Crosstie,
            _ => by(self.reason()),
        }
    }

    /// The key of the bound. A transport's own key has precedence over that of `limits`, if it is set.
    fn key(self) -> Option<&'static str> {
        Some(match self {
            Self::NoRead => "queue_stall_timeout_ms",
            Self::SlowRead => "bytes_per_second_min",
            Self::SlowMessage => "message_timeout_ms",
            Self::NoHeartbeat => "heartbeat_seconds",
            Self::NoPong => "auto_ping_timeout",
            Self::NoRequest => "session_timeout",
            Self::NoPacket => "keep_alive_seconds_max",
            Self::NoGoodbye | Self::NoSession => "handshake_timeout_ms",
            Self::AnswerQueueFull | Self::EventQueueFull => "queue_bytes_max",
            Self::Unacknowledged => "unacknowledged_events_max",
            Self::AllMemory => "queue_bytes_total_max",
            Self::AmqpMemory => "memory_bytes_max",
            Self::SlowContent => "incomplete_timeout_ms",
            Self::CookieLogout
            | Self::Undelivered
            | Self::Operator
            | Self::Stop
            | Self::VhostGone => return None,
        })
    }

    pub fn facts(self) -> Facts {
        Facts {
            reason: self.reason(),
            by: self.by(),
            key: self.key(),
            text: self.text(),
        }
    }
}

impl Facts {
    /// The facts that were noted, or those of a stop, or else of what the connection's reader has seen.
    pub fn of(connection: &Connection, is_stopping: bool, seen: EndReason) -> Self {
        match Cause::noted(connection) {
            Some(cause) => cause.facts(),
            None if is_stopping => Cause::Stop.facts(),
            None => Self::seen(seen),
        }
    }

    /// The facts of a session's end, for a reason that may be another than its connection's.
    pub fn of_session(connection: &Connection, reason: EndReason) -> Self {
        let noted = Cause::noted(connection).map(Cause::facts);
        noted
            .filter(|facts| facts.reason == reason)
            .unwrap_or_else(|| Self::seen(reason))
    }

    fn seen(reason: EndReason) -> Self {
        let text = match reason {
            EndReason::Goodbye => "closed by the client",
            EndReason::Closed => "client unexpectedly closed TCP connection",
            EndReason::Lost => "the connection failed, or its peer does not answer any more",
            EndReason::Violation => "a fault of the client",
            EndReason::Shutdown => Cause::Stop.text(),
            other => other.name(),
        };
        Self {
            reason,
            by: by(reason),
            key: None,
            text,
        }
    }
}

/// The reason that a reader sees in the end of a connection.
pub fn seen(ended: &Ended) -> EndReason {
    match ended {
        Ended::Failed(_) => EndReason::Lost,
        Ended::StageFailed(_) => EndReason::Violation,
        _ => EndReason::Closed,
    }
}

fn by(reason: EndReason) -> By {
    match reason {
        EndReason::Goodbye | EndReason::Aborted | EndReason::Closed => By::Client,
        EndReason::Lost => By::Network,
        EndReason::Violation
        | EndReason::Silent
        | EndReason::Stalled
        | EndReason::Slow
        | EndReason::QueueFull
        | EndReason::Debtor => By::Crosstie,
        EndReason::Killed
        | EndReason::RoleStopped
        | EndReason::RealmStopped
        | EndReason::Shutdown => By::Operator,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_of_crosstie_has_a_key() {
        for cause in Cause::ALL {
            let facts = cause.facts();
            let has_bound = facts.by == By::Crosstie && cause != Cause::VhostGone;
            assert_eq!(facts.key.is_some(), has_bound, "{cause:?}");
        }
    }
}
