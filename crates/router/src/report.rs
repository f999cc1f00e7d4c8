//! Lines in the log about peers: counted, and bounded in number, whatever peers do. What peers have
//! a say in is escaped: it must not look like a line of its own.

use std::fmt::{self, Write as _};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crosstie_routing::Identity;
use crosstie_transport::{Connection, now_s};
use crosstie_wamp::SessionId;

use crate::counters::{Counter, counters};
use crate::wamp::end_reason::EndReason;
use crate::wamp::outbox::Denied;
use crate::wamp::peer::Peer;
use crate::wamp::realm::SharedRealm;

/// Lines of one kind in one second; the rest is only counted.
const LINES_PER_SECOND_MAX: u32 = 20;

/// Lines about faults and refusals, which somebody will look for.
static FAULTS: Bound = Bound::new();
/// Lines about who comes and goes, of which there are many on the best of days.
static COMINGS: Bound = Bound::new();
static SESSIONS: Bound = Bound::new();
/// Lines about connections that could not be accepted, which are all the same.
static ACCEPTS: Bound = Bound::of(1);
/// Lines about what sessions may not do.
static DENIALS: Bound = Bound::new();

/// A peer broke a rule; its connection ends.
pub(crate) fn peer_fault(connection: &Connection, reason: &str, text: &str) {
    counters().count(Counter::PeerFaults);
    if FAULTS.may_log() {
        let (reason, text) = (Escaped(reason), Escaped(text));
        tracing::warn!(peer = %connection.peer(), %reason, "peer fault: {text}");
    }
}

/// A peer was not let into a realm or a vhost, or not any more, by no fault of its own making.
pub(crate) fn session_refused(connection: &Connection, reason: &str, text: &str) {
    counters().count(Counter::SessionsRefused);
    if FAULTS.may_log() {
        let (reason, text) = (Escaped(reason), Escaped(text));
        tracing::warn!(peer = %connection.peer(), %reason, "session refused: {text}");
    }
}

/// A channel's client was closed at a bound; the counter of that bound has counted it.
pub(crate) fn session_closed(connection: &Connection, reason: &str, text: &str) {
    if FAULTS.may_log() {
        let (reason, text) = (Escaped(reason), Escaped(text));
        tracing::warn!(peer = %connection.peer(), %reason, "session closed: {text}");
    }
}

/// A line about a session, at a level that operators see, or that they have to ask for.
macro_rules! tell {
    ($realm:expr, $peer:expr, $identity:expr, $($rest:tt)*) => {
        match $realm.is_quiet {
            true => tracing::debug!(
                peer = %$peer.connection.peer(),
                authid = %Escaped(&$identity.authid),
                role = %Escaped(&$identity.authrole),
                realm = %Escaped($realm.name()),
                $($rest)*
            ),
            false => tracing::info!(
                peer = %$peer.connection.peer(),
                authid = %Escaped(&$identity.authid),
                role = %Escaped(&$identity.authrole),
                realm = %Escaped($realm.name()),
                $($rest)*
            ),
        }
    };
}

/// A session has joined.
pub(crate) fn session_joined(realm: &SharedRealm, peer: &Peer, id: SessionId, who: &Identity) {
    if SESSIONS.may_log() {
        tell!(realm, peer, who, session = id.0, "session joined");
    }
}

/// A session is out of its realm, however that came. Where the router ended it at a bound, that is a
/// line for somebody to look for.
pub(crate) fn session_left(
    realm: &SharedRealm,
    peer: &Peer,
    id: SessionId,
    who: &Identity,
    why: EndReason,
) {
    if why == EndReason::QueueFull {
        if FAULTS.may_log() {
            tracing::warn!(
                peer = %peer.connection.peer(),
                authid = %Escaped(&who.authid),
                role = %Escaped(&who.authrole),
                realm = %Escaped(realm.name()),
                session = id.0,
                reason = "queue_bytes_max",
                "session closed: an answer found its queue full"
            );
        }
    } else if SESSIONS.may_log() {
        let reason = why.name();
        tell!(realm, peer, who, session = id.0, reason, "session left");
    }
}

/// A session's role does not let it do what it asked for.
pub(crate) fn request_denied(realm: &SharedRealm, denied: &Denied) {
    if DENIALS.may_log() {
        let (action, uri) = (denied.action.name(), Escaped(&denied.uri));
        tell!(realm, denied.peer, denied.identity, action, %uri, "request denied");
    }
}

/// An AMQP client has entered a vhost.
pub(crate) fn connection_opened(peer: &crate::amqp::Peer) {
    if COMINGS.may_log() {
        let about = &peer.about;
        tracing::info!(
            peer = %peer.connection.peer(),
            user = %Escaped(&about.user),
            vhost = %Escaped(peer.vhost.name()),
            name = %Escaped(&about.name),
            "AMQP connection opened"
        );
    }
}

/// An AMQP client has left.
pub(crate) fn connection_closed(connection: &Connection, user: &str, text: &str) {
    if COMINGS.may_log() {
        let (user, text) = (Escaped(user), Escaped(text));
        tracing::info!(peer = %connection.peer(), %user, "AMQP connection closed: {text}");
    }
}

/// An operator closes an AMQP connection.
pub(crate) fn connection_forced(connection: &Connection, reason: &str) {
    let reason = Escaped(reason);
    tracing::info!(peer = %connection.peer(), %reason, "AMQP connection closed by an operator");
}

/// An AMQP channel was closed for a fault of its client.
pub(crate) fn channel_closed(connection: &Connection, channel: u16, text: &str) {
    counters().count(Counter::PeerFaults);
    if FAULTS.may_log() {
        let text = Escaped(text);
        tracing::warn!(peer = %connection.peer(), channel, "AMQP channel closed: {text}");
    }
}

/// A listener could not accept a connection; others come right behind it.
pub(crate) fn cannot_accept(e: &std::io::Error) {
    counters().count(Counter::AcceptsFailed);
    if ACCEPTS.may_log() {
        tracing::error!("cannot accept a connection: {e}");
    }
}

/// A peer aborted its session.
pub(crate) fn peer_aborted(connection: &Connection, reason: &str) {
    if COMINGS.may_log() {
        let reason = Escaped(reason);
        tracing::info!(peer = %connection.peer(), %reason, "session aborted by its peer");
    }
}

/// A session subscribes to what no event will come from.
pub(crate) fn silent_topic(connection: &Connection, topic: &str) {
    if COMINGS.may_log() {
        let topic = Escaped(topic);
        tracing::info!(
            peer = %connection.peer(),
            "subscription to {topic}: no event will come, for the realm has no meta API"
        );
    }
}

/// A text that a peer has a say in, in one line: what is no character to be seen is written as
/// Rust would.
pub(crate) struct Escaped<'t>(pub(crate) &'t str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut characters = self.0.chars();
        for character in characters.by_ref().take(TEXT_CHARACTERS_MAX) {
            match character {
                // Quotes are our own as often as not.
                '\'' | '"' => f.write_char(character)?,
                _ => write!(f, "{}", character.escape_debug())?,
            }
        }
        match characters.next() {
            Some(_) => f.write_str("…"),
            None => Ok(()),
        }
    }
}

/// Characters of such a text in a line.
const TEXT_CHARACTERS_MAX: usize = 500;

/// How many lines of a kind there were in this second.
struct Bound {
    lines_max: u32,
    second: AtomicU32,
    lines: AtomicU32,
    suppressed: AtomicU64,
}

impl Bound {
    const fn new() -> Self {
        Self::of(LINES_PER_SECOND_MAX)
    }

    const fn of(lines_max: u32) -> Self {
        Self {
            lines_max,
            second: AtomicU32::new(0),
            lines: AtomicU32::new(0),
            suppressed: AtomicU64::new(0),
        }
    }

    fn may_log(&self) -> bool {
        let (may, suppressed) = self.count(now_s());
        if suppressed > 0 {
            tracing::warn!(suppressed, "further lines about peers were left out");
        }
        may
    }

    /// Whether there may be one more line, and how many were left out before this second.
    fn count(&self, now_s: u32) -> (bool, u64) {
        let mut suppressed = 0;
        if self.second.swap(now_s, Ordering::Relaxed) != now_s {
            self.lines.store(0, Ordering::Relaxed);
            suppressed = self.suppressed.swap(0, Ordering::Relaxed);
        }
        let may = self.lines.fetch_add(1, Ordering::Relaxed) < self.lines_max;
        if !may {
            self.suppressed.fetch_add(1, Ordering::Relaxed);
        }
        (may, suppressed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_peer_says_stays_in_its_line() {
        for (text, expected) in [
            ("there is no user 'grüße'", "there is no user 'grüße'"),
            ("evil\n2026 FORGED\r", r"evil\n2026 FORGED\r"),
            ("\u{1b}[31mred\u{9b}1m", r"\u{1b}[31mred\u{9b}1m"),
            ("\u{202e}turned \u{2028}", r"\u{202e}turned \u{2028}"),
            (r"a\n", r"a\\n"),
        ] {
            assert_eq!(Escaped(text).to_string(), expected);
        }
    }

    #[test]
    fn so_many_lines_a_second() {
        let bound = Bound::new();
        for (now_s, lines, expected, suppressed) in [(1, 50, 20, 0), (2, 5, 5, 30), (9, 21, 20, 0)]
        {
            let counted: Vec<_> = (0..lines).map(|_| bound.count(now_s)).collect();
            assert_eq!(counted.iter().filter(|(may, _)| *may).count(), expected);
            assert_eq!(counted.iter().map(|(_, n)| n).sum::<u64>(), suppressed);
        }
    }
}
