//! Clients that were sent a challenge: a user may have to type a password.

use std::sync::Arc;

use crosstie_auth::wamp::{Cause, Method};

use crate::report;
use crate::wamp::door::{self, Door};
use crate::wamp::peer::Peer;
use crate::watch::Unanswered;

/// A client that was sent CHALLENGE.
pub(crate) struct Challenged {
    pub(crate) peer: Peer,
    pub(crate) authid: Box<str>,
    pub(crate) realm: Box<str>,
    pub(crate) method: Method,
    door: Arc<Door>,
}

impl Challenged {
    /// Texts are shortened to the length of a log line.
    pub(crate) fn new(
        peer: Peer,
        authid: &str,
        realm: &str,
        method: Method,
        door: &Arc<Door>,
    ) -> Self {
        let short = |text: &str| text.chars().take(ASKED_CHARACTERS_MAX).collect();
        Self {
            peer,
            authid: short(authid),
            realm: short(realm),
            method,
            door: Arc::clone(door),
        }
    }
}

impl Unanswered for Challenged {
    fn refuse(&self, within_s: u32) {
        let Self { peer, method, .. } = self;
        let text = format!("no AUTHENTICATE came within {within_s} s of CHALLENGE");
        let cause = Cause::ChallengeTimeout;
        self.door.note_refused(&door::Refused {
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
