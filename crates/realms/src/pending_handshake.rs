//! The state of a pending handshake.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crosstie_auth::wamp::{Given, Handshake, Method, Methods, Refusal, Resumption, Step};
use crosstie_front::report::Refused;
use crosstie_routing::ClientFeatures;
use crosstie_wamp::Dict;

use crate::door::Place;
use crate::elsewhere::Slot;

/// The features and the resumption requested in HELLO.
pub(super) type Wishes = (ClientFeatures, Option<Resumption>);

/// A pending handshake; it ends with WELCOME.
pub(super) struct Pending {
    pub(super) handshake: Box<Handshake>,
    /// The methods at its beginning.
    pub(super) methods: Arc<Methods>,
    pub(super) wishes: Wishes,
    pub waits: Waits,
    /// A hash of the credentials, for methods with a reusable secret.
    pub(super) credentials: Option<u64>,
    /// The time that its credentials waited to be checked.
    pub(super) waited: Duration,
    pub _place: Place,
    /// Its bytes on the connection's account.
    pub(super) held_bytes: isize,
}

/// The event that the handshake waits for.
pub(super) enum Waits {
    Authenticate,
    Answer {
        slot: Arc<Slot>,
        /// Dropping it cancels the call.
        _asked: Box<dyn Send>,
    },
    Key {
        slot: Arc<Slot>,
    },
    /// Keys of an issuer.
    Keys {
        slot: Arc<Slot>,
    },
    /// The end of a delay, followed by this refusal.
    Refusal {
        slot: Arc<Slot>,
        refusal: Refusal,
    },
    /// Its turn, until `last`, behind wrong credentials that wait for their answers.
    Place {
        slot: Arc<Slot>,
        last: Instant,
        look: Look,
    },
}

/// The credentials to check when it is the handshake's turn.
pub(super) enum Look {
    /// The step that followed HELLO.
    Hello(Box<Step>),
    Authenticate {
        signature: String,
        extra: Dict,
    },
}

impl Pending {
    /// The report of a final refusal.
    pub(super) fn refused<'r>(&'r self, refusal: &'r Refusal) -> Refused<'r> {
        let handshake = &self.handshake;
        let authid = handshake.authid().unwrap_or_default();
        refused(refusal, authid, handshake.realm(), Some(handshake.method()))
    }

    /// Whether the connection must not be read until an outcome arrives.
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

/// The time and the random bytes of one handshake.
pub(super) fn given() -> Option<Given> {
    let mut chance = [0; Given::CHANCE_BYTES];
    getrandom::fill(&mut chance).ok()?;
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let unix_ms = since.map_or(0, |since| since.as_millis() as u64);
    Some(Given { unix_ms, chance })
}
