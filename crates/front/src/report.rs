//! Log lines about peers: counted, and limited in number, whatever peers do. Text from peers is escaped, so that it
//! cannot look like a line of its own.

use std::fmt::{self, Write as _};

use crosstie_transport::{Connection, PeerAddress};

use crate::bound::Bound;
use crate::cause::{Cause, Facts};
use crate::counters::{Counter, counters};

/// Lines about faults and refusals, which operators look for.
pub static FAULTS: Bound = Bound::usual();
/// Lines about clients that connect and disconnect, of which there are many.
static COMINGS: Bound = Bound::usual();
/// Lines about connections that could not be accepted, which are all alike.
static ACCEPTS: Bound = Bound::of(1);

/// A peer violated a rule; its connection ends.
pub fn peer_fault(connection: &Connection, reason: &str, text: &str) {
    counters().count(Counter::PeerFaults);
    if FAULTS.may_log() {
        let (reason, text) = (Escaped(reason), Escaped(text));
        tracing::warn!(peer = %connection.peer(), %reason, "peer fault: {text}");
    }
}

/// A proxy's connection has no valid header; the connection is closed.
pub(crate) fn unproxied(proxy: PeerAddress, why: &dyn fmt::Display) {
    counters().count(Counter::PeerFaults);
    if FAULTS.may_log() {
        tracing::warn!(peer = %proxy, reason = "proxy_protocol", "peer fault: {why}");
    }
}

/// A peer exceeded a timeout; its connection is closed when this returns.
pub fn timed_out(connection: &Connection, cause: Cause) {
    cause.note(connection);
    counters().count(Counter::PeerFaults);
    if FAULTS.may_log() {
        let Facts { by, key, text, .. } = cause.facts();
        let (peer, by, reason) = (connection.peer(), by.name(), "timeout");
        tracing::warn!(%peer, by, reason, key, "peer fault: {text}");
    }
}

/// A peer that was refused by a realm or a vhost, or removed from it. Fields that the peer has not sent are empty. None
/// contains credentials.
#[derive(Clone, Copy, Default)]
pub struct Refused<'r> {
    /// The reason for the peer, if its protocol has one.
    pub reason: &'r str,
    pub text: &'r str,
    /// A word for the operator.
    pub cause: &'r str,
    /// The authid or the user.
    pub who: &'r str,
    /// The realm or the vhost.
    pub place: &'r str,
    /// The authentication method.
    pub method: &'r str,
}

impl<'r> Refused<'r> {
    /// For a reason whose last word is the cause.
    pub fn new(reason: &'r str, text: &'r str) -> Self {
        Self {
            reason,
            text,
            cause: reason.rsplit('.').next().unwrap_or(reason),
            ..Self::default()
        }
    }
}

/// A client was refused by a realm.
pub fn session_refused(connection: &Connection, refused: &Refused<'_>) {
    counters().count(Counter::SessionsRefused);
    if FAULTS.may_log() {
        tracing::warn!(
            peer = %connection.peer(),
            authid = said(refused.who),
            realm = said(refused.place),
            method = said(refused.method),
            cause = said(refused.cause),
            reason = %Escaped(refused.reason),
            "session refused: {}",
            Escaped(refused.text)
        );
    }
}

/// An AMQP client was refused by a vhost.
pub fn connection_refused(connection: &Connection, refused: &Refused<'_>) {
    counters().count(Counter::SessionsRefused);
    if FAULTS.may_log() {
        tracing::warn!(
            peer = %connection.peer(),
            user = said(refused.who),
            vhost = said(refused.place),
            method = said(refused.method),
            cause = said(refused.cause),
            reason = %Escaped(refused.reason),
            "session refused: {}",
            Escaped(refused.text)
        );
    }
}

fn said(text: &str) -> Option<tracing::field::DisplayValue<Escaped<'_>>> {
    (!text.is_empty()).then(|| tracing::field::display(Escaped(text)))
}

/// A connection is closed for `cause` when this returns; the limit's counter has been incremented.
pub fn session_closed(connection: &Connection, cause: Cause, text: &str) {
    cause.note(connection);
    if FAULTS.may_log() {
        let (peer, facts, text) = (connection.peer(), cause.facts(), Escaped(text));
        let (by, key) = (facts.by.name(), facts.key);
        let reason = key.unwrap_or_else(|| facts.reason.name());
        tracing::warn!(%peer, by, reason, key, "session closed: {text}");
    }
}

/// An AMQP client has entered a vhost.
pub fn connection_opened(connection: &Connection, vhost: &str, user: &str, name: &str) {
    if COMINGS.may_log() {
        tracing::info!(
            peer = %connection.peer(),
            user = %Escaped(user),
            vhost = %Escaped(vhost),
            name = %Escaped(name),
            "AMQP connection opened"
        );
    }
}

/// An AMQP client was spliced to another node.
pub fn connection_passed_on(connection: &Connection, user: &str, to: PeerAddress) {
    if COMINGS.may_log() {
        let user = Escaped(user);
        tracing::info!(peer = %connection.peer(), %user, "AMQP connection passed on to {to}");
    }
}

/// An AMQP client has left.
pub fn connection_closed(connection: &Connection, user: &str, facts: &Facts) {
    if COMINGS.may_log() {
        let (peer, user, text) = (connection.peer(), Escaped(user), facts.text);
        let (by, reason, key) = (facts.by.name(), facts.reason.name(), facts.key);
        tracing::info!(%peer, %user, by, reason, key, "AMQP connection closed: {text}");
    }
}

/// An operator closes an AMQP connection.
pub fn connection_forced(connection: &Connection, reason: &str) {
    let reason = Escaped(reason);
    tracing::info!(peer = %connection.peer(), %reason, "AMQP connection closed by an operator");
}

/// An AMQP channel was closed for a fault of its client.
pub fn channel_closed(connection: &Connection, channel: u16, text: &str) {
    counters().count(Counter::PeerFaults);
    if FAULTS.may_log() {
        let text = Escaped(text);
        tracing::warn!(peer = %connection.peer(), channel, "AMQP channel closed: {text}");
    }
}

/// A client has declared a queue with an argument that is accepted and not honoured.
pub fn queue_warning(connection: &Connection, vhost: &str, queue: &str, text: &str) {
    if FAULTS.may_log() {
        let (queue, vhost) = (Escaped(queue), Escaped(vhost));
        let peer = connection.peer();
        tracing::warn!(%peer, %vhost, %queue, "the broker ignores an argument of a declared queue: {text}");
    }
}

/// A listener could not accept a connection; more failures follow at once.
pub(crate) fn cannot_accept(e: &std::io::Error) {
    counters().count(Counter::AcceptsFailed);
    if ACCEPTS.may_log() {
        tracing::error!("cannot accept a connection: {e}");
    }
}

/// A peer aborted its session.
pub fn peer_aborted(connection: &Connection, reason: &str) {
    if COMINGS.may_log() {
        let reason = Escaped(reason);
        tracing::info!(peer = %connection.peer(), %reason, "session aborted by its peer");
    }
}

/// A session subscribes to a topic without events.
pub fn silent_topic(connection: &Connection, topic: &str) {
    if COMINGS.may_log() {
        let topic = Escaped(topic);
        tracing::info!(
            peer = %connection.peer(),
            "subscription to {topic}: no event will arrive, because the realm has no meta API"
        );
    }
}

/// Text from a peer, on one line: invisible characters are escaped as in Rust.
pub struct Escaped<'t>(pub &'t str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut characters = self.0.chars();
        for character in characters.by_ref().take(TEXT_CHARACTERS_MAX) {
            match character {
                // Quotes are usually the router's own.
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

/// Maximum length of such a text in a line.
const TEXT_CHARACTERS_MAX: usize = 500;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_from_a_peer_stays_on_its_line() {
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
}
