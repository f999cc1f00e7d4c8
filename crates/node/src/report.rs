//! Lines in the log about peers: counted, and bounded in number, whatever peers do.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crosstie_transport::{Connection, now_s};

use crate::counters::{Counter, counters};

/// Lines about peers' faults in one second; the rest is only counted.
const LINES_PER_SECOND_MAX: u32 = 20;

static SECOND: AtomicU32 = AtomicU32::new(0);
static LINES: AtomicU32 = AtomicU32::new(0);
static SUPPRESSED: AtomicU64 = AtomicU64::new(0);

/// A peer broke a rule; its connection ends.
pub(crate) fn peer_fault(connection: &Connection, reason: &str, text: &str) {
    counters().count(Counter::PeerFaults);
    if may_log() {
        tracing::warn!(peer = %connection.peer(), reason, "peer fault: {text}");
    }
}

/// A peer was not let into a realm, or not any more, by no fault of its own making.
pub(crate) fn session_refused(connection: &Connection, reason: &str, text: &str) {
    counters().count(Counter::SessionsRefused);
    if may_log() {
        tracing::info!(peer = %connection.peer(), reason, "session refused: {text}");
    }
}

/// A session was closed at a bound; the counter of that bound has counted it.
pub(crate) fn session_closed(connection: &Connection, reason: &str, text: &str) {
    if may_log() {
        tracing::warn!(peer = %connection.peer(), reason, "session closed: {text}");
    }
}

/// An AMQP client has entered a vhost.
pub(crate) fn connection_opened(peer: &crate::amqp::Peer) {
    if may_log() {
        let about = &peer.about;
        tracing::info!(
            peer = %peer.connection.peer(),
            user = %about.user,
            vhost = %peer.vhost.name(),
            name = %about.name,
            "AMQP connection opened"
        );
    }
}

/// An AMQP client has left.
pub(crate) fn connection_closed(connection: &Connection, user: &str, text: &str) {
    if may_log() {
        tracing::info!(peer = %connection.peer(), %user, "AMQP connection closed: {text}");
    }
}

/// An operator closes an AMQP connection.
pub(crate) fn connection_forced(connection: &Connection, reason: &str) {
    if may_log() {
        tracing::info!(peer = %connection.peer(), %reason, "AMQP connection closed by an operator");
    }
}

/// An AMQP channel was closed for a fault of its client.
pub(crate) fn channel_closed(connection: &Connection, channel: u16, text: &str) {
    counters().count(Counter::PeerFaults);
    if may_log() {
        tracing::warn!(peer = %connection.peer(), channel, "AMQP channel closed: {text}");
    }
}

/// A peer aborted its session.
pub(crate) fn peer_aborted(connection: &Connection, reason: &str) {
    if may_log() {
        tracing::info!(peer = %connection.peer(), reason, "session aborted by its peer");
    }
}

fn may_log() -> bool {
    let now = now_s();
    if SECOND.swap(now, Ordering::Relaxed) != now {
        LINES.store(0, Ordering::Relaxed);
        let suppressed = SUPPRESSED.swap(0, Ordering::Relaxed);
        if suppressed > 0 {
            tracing::warn!(suppressed, "further lines about peers were left out");
        }
    }
    let may = LINES.fetch_add(1, Ordering::Relaxed) < LINES_PER_SECOND_MAX;
    if !may {
        SUPPRESSED.fetch_add(1, Ordering::Relaxed);
    }
    may
}
