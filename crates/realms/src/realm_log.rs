//! Log lines about a realm and its sessions, bounded in number like those of [`crosstie_front::report`].

use crosstie_auth::wamp::Answer;
use crosstie_front::bound::Bound;
use crosstie_front::cause::Facts;
use crosstie_front::end_reason::EndReason;
use crosstie_front::report::{Escaped, FAULTS};
use crosstie_routing::Identity;
use crosstie_wamp::codec::Unreadable;
use crosstie_wamp::{Message, Serializer, SessionId};

use crate::hourly_lines::HourlyLines;
use crate::outbox::Denied;
use crate::peer::Peer;

static SESSIONS: Bound = Bound::usual();
/// Lines about denied requests.
static DENIALS: Bound = Bound::usual();

/// Writes the lines about one realm.
pub(crate) struct RealmLog {
    /// The realm's URI.
    pub realm: String,
    /// Sessions are logged at debug level.
    is_quiet: bool,
    /// Lines about values that did not reach receivers.
    of_values: HourlyLines,
}

/// A line about a session, at info level or, for quiet realms, at debug level.
macro_rules! tell {
    ($log:expr, $peer:expr, $identity:expr, $($rest:tt)*) => {
        match $log.is_quiet {
            true => tracing::debug!(
                peer = %$peer.connection.peer(),
                authid = %Escaped(&$identity.authid),
                role = %Escaped(&$identity.authrole),
                realm = %Escaped(&$log.realm),
                $($rest)*
            ),
            false => tracing::info!(
                peer = %$peer.connection.peer(),
                authid = %Escaped(&$identity.authid),
                role = %Escaped(&$identity.authrole),
                realm = %Escaped(&$log.realm),
                $($rest)*
            ),
        }
    };
}

impl RealmLog {
    pub(crate) fn new(realm: &str, is_quiet: bool) -> Self {
        Self {
            realm: realm.to_owned(),
            is_quiet,
            of_values: HourlyLines::default(),
        }
    }

    /// A session has joined.
    pub(super) fn session_joined(&self, peer: &Peer, id: SessionId, who: &Identity) {
        if SESSIONS.may_log() {
            tell!(self, peer, who, session = id.0, "session joined");
        }
    }

    /// A session has left its realm, for any reason. If the router ended it at a bound, the line is a warning.
    pub(super) fn session_left(&self, peer: &Peer, id: SessionId, who: &Identity, why: EndReason) {
        let Facts { by, key, text, .. } = Facts::of_session(&peer.connection, why);
        let by = by.name();
        if why == EndReason::QueueFull {
            if FAULTS.may_log() {
                tracing::warn!(
                    peer = %peer.connection.peer(),
                    authid = %Escaped(&who.authid),
                    role = %Escaped(&who.authrole),
                    realm = %Escaped(&self.realm),
                    session = id.0,
                    by,
                    reason = key.unwrap_or_else(|| why.name()),
                    key,
                    "session closed: {text}"
                );
            }
        } else if SESSIONS.may_log() {
            let reason = why.name();
            tell!(
                self,
                peer,
                who,
                session = id.0,
                by,
                reason,
                key,
                "session left"
            );
        }
    }

    /// A session's role denies its request.
    pub(super) fn request_denied(&self, denied: &Denied) {
        if DENIALS.may_log() {
            let (action, uri) = (denied.action.name(), Escaped(&denied.uri));
            let cause = denied.cause.name();
            tell!(self, denied.peer, denied.identity, action, %uri, cause, "request denied");
        }
    }

    /// An authorizer has not decided: the operator needs the reason why requests are denied.
    pub(super) fn authorizer_failed(&self, procedure: &str, answer: &Answer) {
        if FAULTS.may_log() {
            let text = match answer {
                Answer::Error { uri, text } => format!("{uri}: {text}"),
                other => format!("{other:?}"),
            };
            tracing::warn!(
                realm = %Escaped(&self.realm),
                procedure = %Escaped(procedure),
                "authorizer failed: {}",
                Escaped(&text)
            );
        }
    }

    /// An event was dropped for receivers of a serializer that cannot represent it: one line per reason and hour.
    pub(super) fn event_unwritable(&self, reason: &'static str, into: Serializer) {
        if self.of_values.may_say(reason, into) && FAULTS.may_log() {
            tracing::warn!(
                realm = %Escaped(&self.realm),
                serializer = into.name(),
                "events are dropped for subscribers with this serializer: {reason}"
            );
        }
    }

    /// A message was refused because common libraries cannot decode it: one line per kind of value and hour.
    pub(super) fn unreadable_refused(
        &self,
        peer: &Peer,
        message: &Message<'_>,
        unreadable: &Unreadable,
    ) {
        let serializer = peer.wire.serializer;
        if self.of_values.may_say(unreadable.kind, serializer) && FAULTS.may_log() {
            let text = unreadable.to_string();
            tracing::warn!(
                peer = %peer.connection.peer(),
                realm = %Escaped(&self.realm),
                serializer = serializer.name(),
                "{} refused, because common WAMP libraries cannot decode it: {}",
                message.kind().name(),
                Escaped(&text)
            );
        }
    }
}
