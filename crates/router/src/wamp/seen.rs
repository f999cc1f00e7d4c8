//! A session for operators.

use crosstie_routing::{Identity, Time};
use crosstie_wamp::SessionId;

use crate::wamp::peer::Peer;

/// A session's details, copied under its realm's lock and formatted outside it.
pub(crate) struct Seen {
    pub(crate) peer: Peer,
    pub(crate) id: SessionId,
    pub(crate) identity: Identity,
    pub(crate) joined: Time,
    pub(crate) subscriptions: usize,
    pub(crate) registrations: usize,
    pub(crate) calls: usize,
}
