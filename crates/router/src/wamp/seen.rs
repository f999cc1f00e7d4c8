//! What operators are told of a session.

use crosstie_routing::{Identity, Time};
use crosstie_wamp::SessionId;

use crate::wamp::peer::Peer;

/// What is copied of a session under its realm's lock; it is put into words outside.
pub(crate) struct Seen {
    pub(crate) peer: Peer,
    pub(crate) id: SessionId,
    pub(crate) identity: Identity,
    pub(crate) joined: Time,
    pub(crate) subscriptions: usize,
    pub(crate) registrations: usize,
    pub(crate) calls: usize,
}
