//! A handshake that is not done: what is kept of it meanwhile.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crosstie_auth::wamp::{Given, Handshake, Method, Methods, Refusal, Resumption, Step};
use crosstie_routing::ClientFeatures;
use crosstie_wamp::Dict;

use crate::door::Place;
use crate::report::Refused;
use crate::wamp::elsewhere::Slot;

/// What HELLO says of the session that is to be.
pub(super) type Wishes = (ClientFeatures, Option<Resumption>);

/// A handshake that is not done. It is gone with WELCOME.
pub(super) struct Pending {
    pub(super) handshake: Box<Handshake>,
    /// With which it began.
    pub(super) methods: Arc<Methods>,
    pub(super) wishes: Wishes,
    pub(super) waits: Waits,
    /// A hash of what it has proven itself by, if that is the same each time.
    pub(super) credentials: Option<u64>,
    /// How long its credentials waited to be looked at.
    pub(super) waited: Duration,
    pub(super) _place: Place,
    /// Bytes of it on the connection's account.
    pub(super) held_bytes: isize,
}

/// What the handshake waits for.
pub(super) enum Waits {
    Authenticate,
    Answer {
        slot: Arc<Slot>,
        /// Nobody is asked any more when it is dropped.
        _asked: Box<dyn Send>,
    },
    Key {
        slot: Arc<Slot>,
    },
    /// An issuer's keys.
    Keys {
        slot: Arc<Slot>,
    },
    /// The end of a delay, before this is said.
    Refusal {
        slot: Arc<Slot>,
        refusal: Refusal,
    },
    /// Its turn, until `last`: others' wrong credentials wait for their answers.
    Place {
        slot: Arc<Slot>,
        last: Instant,
        look: Look,
    },
}

/// The credentials to be looked at when it is a handshake's turn.
pub(super) enum Look {
    /// The step that followed from HELLO.
    Hello(Box<Step>),
    Authenticate {
        signature: String,
        extra: Dict,
    },
}

impl Pending {
    /// The report of a refusal that ends it.
    pub(super) fn refused<'r>(&'r self, refusal: &'r Refusal) -> Refused<'r> {
        let handshake = &self.handshake;
        let authid = handshake.authid().unwrap_or_default();
        refused(refusal, authid, handshake.realm(), Some(handshake.method()))
    }

    /// Whether nothing is to be read until something has happened elsewhere.
    pub(super) fn waits_elsewhere(&self) -> bool {
        !matches!(self.waits, Waits::Authenticate)
    }
}

/// The report of a refusal.
pub(super) fn refused<'r>(
    refusal: &'r Refusal,
    authid: &'r str,
    realm: &'r str,
    method: Option<Method>,
) -> Refused<'r> {
    Refused {
        reason: &refusal.reason,
        text: &refusal.text,
        cause: refusal.cause.name(),
        who: authid,
        place: realm,
        method: method.map_or("", Method::name),
    }
}

/// Time and chance of one handshake.
pub(super) fn given() -> Option<Given> {
    let mut chance = [0; Given::CHANCE_BYTES];
    getrandom::fill(&mut chance).ok()?;
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let unix_ms = since.map_or(0, |since| since.as_millis() as u64);
    Some(Given { unix_ms, chance })
}
