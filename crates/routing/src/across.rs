//! What a realm shares with others of its name on other nodes: events, and what it wants to be sent.

use crosstie_wamp::{Disclosed, MatchPolicy, Payload, PublicationId, PublishOptions};

/// An event on its way from the node where it was published to another.
#[derive(Clone, Debug, PartialEq)]
pub struct Publication<'m> {
    pub id: PublicationId,
    /// Who published, where that may be told.
    pub publisher: Option<Disclosed<'m>>,
    /// Its lists of receivers are for every node to apply to its own sessions.
    pub options: &'m PublishOptions,
    pub topic: &'m str,
    pub payload: Payload<'m>,
}

/// What a subscription is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pattern<'m> {
    pub match_policy: MatchPolicy,
    pub topic: &'m str,
}

/// How far other nodes know what this one wants. Whatever was wanted at a position is sent from when that has been
/// [reached](crate::Realm::handle_in_force); 0 always has been.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position(pub u64);

/// Why an event cannot be published: it would reach some of those whom it should, and not all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Uncrossed {
    /// Other nodes cannot be reached.
    Detached,
    /// What is between the nodes does not take so much.
    TooLong,
}
