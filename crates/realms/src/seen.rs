//! A session for operators.

use crosstie_routing::{Identity, Time};
use crosstie_wamp::SessionId;

use crate::peer::Peer;

/// A session's details, copied under its realm's lock and formatted outside it.
pub struct Seen {
    pub peer: Peer,
    pub id: SessionId,
    pub identity: Identity,
    pub joined: Time,
    pub subscriptions: usize,
    pub registrations: usize,
    pub calls: usize,
}
