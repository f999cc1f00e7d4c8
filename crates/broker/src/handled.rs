//! The outcome of an input: one type for every layer between a connection's bytes and its vhost.

use crosstie_queues::Fault;

use super::turned_away::TurnedAway;

/// How much of the offered bytes a layer has handled.
pub(super) enum Handled {
    /// `consumed` bytes are handled; the rest is complete enough to handle next.
    Done { consumed: usize },
    /// `consumed` bytes are handled; the rest is part of `wanted` bytes that have not all arrived.
    Wait { consumed: usize, wanted: usize },
    /// `consumed` bytes are handled and the turn is over: the rest waits for the next turn.
    Yield { consumed: usize },
    /// `consumed` bytes are handled; another reader takes the rest.
    HandOver { consumed: usize },
    /// The conversation changes its state before the rest is handled.
    End(End),
}

impl Handled {
    /// The handled bytes of an input, as far as known: at an end all of them.
    pub(super) fn consumed(&self, input: &[u8]) -> usize {
        match self {
            Self::Done { consumed }
            | Self::Wait { consumed, .. }
            | Self::Yield { consumed }
            | Self::HandOver { consumed } => *consumed,
            Self::End(_) => input.len(),
        }
    }
}

/// The reason why a conversation changes its state.
pub(super) enum End {
    /// The client closes the connection.
    ByClient,
    /// The client has answered the broker's close, or gets no answer.
    Answered,
    /// Another thread has sent `connection.close`.
    Forced,
    /// The broker closes the connection for a fault of the client.
    Fault(Fault),
    /// The client is refused entry to a vhost.
    TurnedAway(Box<TurnedAway>),
}
