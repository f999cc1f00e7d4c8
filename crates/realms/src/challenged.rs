//! Clients that were sent a challenge: a user may have to type a password.

use std::sync::Arc;

use crosstie_auth::wamp::{Cause, Method};
use crosstie_front::report;
use crosstie_front::watch::Unanswered;

use crate::door::{self, Door};
use crate::peer::Peer;

/// A client that was sent CHALLENGE.
pub(crate) struct Challenged {
    pub peer: Peer,
    pub authid: Box<str>,
    pub realm: Box<str>,
    pub method: Method,
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
