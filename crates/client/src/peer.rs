//! Another session of the realm.

use crosstie_wamp::{Disclosed, SessionId};

/// Another session of the realm, as far as the router discloses it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// The session's id.
    pub session: SessionId,
    /// The user's name.
    pub authid: String,
    /// The user's role.
    pub authrole: String,
}

impl Peer {
    pub(crate) fn of(disclosed: &Disclosed<'_>) -> Self {
        Self {
            session: disclosed.session,
            authid: disclosed.authid.as_ref().to_owned(),
            authrole: disclosed.authrole.as_ref().to_owned(),
        }
    }
}
