//! Clients that were asked for their credentials: a person may have to type a password.

use crosstie_auth::wamp::{Cause, Method};

use crate::door::{self, Door};
use crate::report;
use crate::wamp::peer::Peer;

/// A client that has been sent CHALLENGE.
pub(crate) struct Asked {
    pub(crate) peer: Peer,
    pub(crate) authid: Box<str>,
    pub(crate) realm: Box<str>,
    pub(crate) method: Method,
    /// The rest of the handshake's own time.
    pub(super) left_s: u32,
    /// How long the client may take, in all, and has taken before.
    pub(super) within_s: u32,
    pub(super) asked_s: u32,
}

impl Asked {
    /// Not more of what a peer says than a line in the log has.
    pub(crate) fn new(peer: Peer, authid: &str, realm: &str, method: Method) -> Self {
        let short = |text: &str| text.chars().take(ASKED_CHARACTERS_MAX).collect();
        Self {
            peer,
            authid: short(authid),
            realm: short(realm),
            method,
            left_s: 0,
            within_s: 0,
            asked_s: 0,
        }
    }

    /// Ends a handshake whose client has not answered CHALLENGE.
    pub(super) fn refuse(&self, door: &Door) {
        let Self { peer, method, .. } = self;
        let text = format!(
            "no AUTHENTICATE came within {} s of CHALLENGE",
            self.within_s
        );
        let cause = Cause::ChallengeTimeout;
        door.note_refused(&door::Refused {
            connection: &peer.connection,
            cause,
            reason: CHALLENGE_TIMEOUT,
            authid: &self.authid,
            credentials: None,
            realm: &self.realm,
            method: Some(*method),
        });
        let refused = report::Refused {
            reason: CHALLENGE_TIMEOUT,
            text: &text,
            cause: cause.name(),
            who: &self.authid,
            place: &self.realm,
            method: method.name(),
        };
        report::session_refused(&peer.connection, &refused);
        peer.say_last(CHALLENGE_TIMEOUT, &text);
    }
}

const ASKED_CHARACTERS_MAX: usize = 128;
const CHALLENGE_TIMEOUT: &str = "crosstie.error.challenge_timeout";
