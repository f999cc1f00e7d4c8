//! The outcome of an input: one answer from every layer between a connection's bytes and its
//! vhost.

use crosstie_queues::Fault;

use super::turned_away::TurnedAway;

/// How far somebody came with the bytes that it was offered.
pub(super) enum Handled {
    /// So many are done with; what is behind them is there to be handled.
    Done { consumed: usize },
    /// So many are done with; what is behind them has `wanted` bytes, which are not all there.
    Wait { consumed: usize, wanted: usize },
    /// So many are done with, and the turn is over: the rest is for the next one.
    Yield { consumed: usize },
    /// So many are done with; somebody else reads what follows.
    HandOver { consumed: usize },
    /// What follows is not handled as what was before.
    End(End),
}

/// Why a conversation takes another course.
pub(super) enum End {
    /// The client closes the connection.
    ByClient,
    /// The client has answered that the broker closes it; or it is told nothing.
    Answered,
    /// Somebody else has said that the broker closes it.
    Forced,
    /// The broker closes it, for what the client did.
    Fault(Fault),
    /// The client is not let into a vhost.
    TurnedAway(Box<TurnedAway>),
}
