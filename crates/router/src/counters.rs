//! What the router counts. Each thread counts for itself; a report adds the threads up.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

use crosstie_routing::JoinError;
use parking_lot::Mutex;

use crate::end_reason::EndReason;

/// One thing that is counted; [`Counter::ALL`] says what it is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counter {
    Reads,
    ReceivedBytes,
    ConnectionsOpened,
    ConnectionsClosed,
    ConnectionsToBulk,
    ConnectionsRefused,
    ConnectionsRefusedOfAddress,
    ConnectionsRefusedForDescriptors,
    ConnectionsRefusedForRate,
    PageConnectionsRefused,
    HttpConnectionsRested,
    AcceptsFailed,
    SessionsJoined,
    SessionsLeft,
    SessionsRefused,
    EventsDroppedFull,
    EventsDroppedUnrepresentable,
    EventsDroppedOther,
    MessagesRefused,
    SessionsClosedForRefusal,
    ConnectionsClosedForSilence,
    ConnectionsClosedUnused,
    ConnectionsClosedForStall,
    ConnectionsClosedForSlowInput,
    ConnectionsClosedForDebt,
    PeerFaults,
    LoneSurrogatesReplaced,
    LoneSurrogatesRefused,
    UnreadableRefused,
    UnreadableConverted,
    RetainedEventsEvicted,
    RetainedEventsNotSent,
    RequestsDenied,
    AuthorizersAsked,
    TurnsYielded,
    RoleSessionsRefused,
    AuthidSessionsRefused,
    RoleSubscriptionsRefused,
    RoleRegistrationsRefused,
    RoleCallsRefused,
    SessionsSlowed,
    RecordedEventsEvicted,
    EventsNotRecorded,
    EventsDroppedOldest,
    SessionsClosedForSlowness,
    SessionsClosedUnacknowledged,
    SessionsResumed,
    PublishersHeldBack,
}

impl Counter {
    /// Every counter with its name in the metrics and what it says there.
    pub(crate) const ALL: [(Self, &'static str, &'static str); 48] = [
        (Self::Reads, "reads", "Reads that brought bytes"),
        (
            Self::ReceivedBytes,
            "received_bytes",
            "Bytes handed to the protocol",
        ),
        (
            Self::ConnectionsOpened,
            "connections_opened",
            "Connections accepted",
        ),
        (
            Self::ConnectionsClosed,
            "connections_closed",
            "Connections ended",
        ),
        (
            Self::ConnectionsToBulk,
            "connections_to_bulk",
            "Times that a connection went to a thread for large messages",
        ),
        (
            Self::ConnectionsRefused,
            "connections_refused",
            "Connections turned away",
        ),
        (
            Self::ConnectionsRefusedOfAddress,
            "connections_refused_of_address",
            "Connections turned away because their address has as many as it may have",
        ),
        (
            Self::ConnectionsRefusedForDescriptors,
            "connections_refused_for_descriptors",
            "Connections turned away because the last descriptors are not for them",
        ),
        (
            Self::ConnectionsRefusedForRate,
            "connections_refused_for_rate",
            "Connections turned away because more come in a second than their listener takes",
        ),
        (
            Self::PageConnectionsRefused,
            "page_connections_refused",
            "Connections that asked for a page and were told to come again",
        ),
        (
            Self::HttpConnectionsRested,
            "http_connections_rested",
            "Times that an HTTP connection on which nothing happened gave its buffers back",
        ),
        (
            Self::AcceptsFailed,
            "accepts_failed",
            "Connections that could not be accepted, mostly for want of descriptors",
        ),
        (
            Self::SessionsJoined,
            "sessions_joined",
            "Sessions that joined a realm",
        ),
        (
            Self::SessionsLeft,
            "sessions_left",
            "Sessions that left their realm",
        ),
        (
            Self::SessionsRefused,
            "sessions_refused",
            "Sessions that were not let into a realm",
        ),
        (
            Self::EventsDroppedFull,
            "events_dropped_full",
            "Events dropped at a full queue",
        ),
        (
            Self::EventsDroppedUnrepresentable,
            "events_dropped_unrepresentable",
            "Events that a receiver's serializer cannot hold",
        ),
        (
            Self::EventsDroppedOther,
            "events_dropped_other",
            "Events for a receiver that was gone or takes no such length",
        ),
        (
            Self::MessagesRefused,
            "messages_refused",
            "Messages other than events that a receiver did not take",
        ),
        (
            Self::SessionsClosedForRefusal,
            "sessions_closed_for_refusal",
            "Sessions closed because they did not take an answer",
        ),
        (
            Self::ConnectionsClosedForSilence,
            "connections_closed_for_silence",
            "Connections closed because a ping was not answered",
        ),
        (
            Self::ConnectionsClosedUnused,
            "connections_closed_unused",
            "Connections closed because no byte came within the time of a handshake",
        ),
        (
            Self::ConnectionsClosedForStall,
            "connections_closed_for_stall",
            "Connections closed because they took nothing, or next to nothing, of what waited for them",
        ),
        (
            Self::ConnectionsClosedForSlowInput,
            "connections_closed_for_slow_input",
            "Connections closed because a message came too slowly",
        ),
        (
            Self::ConnectionsClosedForDebt,
            "connections_closed_for_debt",
            "Connections closed because they owed the most when memory reached its bound",
        ),
        (
            Self::PeerFaults,
            "peer_faults",
            "Connections ended for a fault of the peer",
        ),
        (
            Self::LoneSurrogatesReplaced,
            "lone_surrogates_replaced",
            "Halves of characters in JSON text that were replaced by U+FFFD",
        ),
        (
            Self::LoneSurrogatesRefused,
            "lone_surrogates_refused",
            "Messages that were refused for halves of characters in them",
        ),
        (
            Self::UnreadableRefused,
            "unreadable_refused",
            "Messages refused because common WAMP libraries cannot decode their arguments",
        ),
        (
            Self::UnreadableConverted,
            "unreadable_converted",
            "Messages whose arguments were converted so that common WAMP libraries can decode them",
        ),
        (
            Self::RetainedEventsEvicted,
            "retained_events_evicted",
            "Retained events that made room for newer ones",
        ),
        (
            Self::RetainedEventsNotSent,
            "retained_events_not_sent",
            "Retained events beyond what one subscription is sent",
        ),
        (
            Self::RequestsDenied,
            "requests_denied",
            "Requests that a session's role does not allow",
        ),
        (
            Self::AuthorizersAsked,
            "authorizers_asked",
            "Questions to authorizers",
        ),
        (
            Self::TurnsYielded,
            "turns_yielded",
            "Inputs that went on when others had had their turns",
        ),
        (
            Self::RoleSessionsRefused,
            "role_sessions_refused",
            "Sessions that were not let in because their role has as many as it may",
        ),
        (
            Self::AuthidSessionsRefused,
            "authid_sessions_refused",
            "Sessions that were not let in because their authid has as many as its role, realm or listener allows",
        ),
        (
            Self::RoleSubscriptionsRefused,
            "role_subscriptions_refused",
            "Subscriptions that were refused at a bound of a role, realm or listener",
        ),
        (
            Self::RoleRegistrationsRefused,
            "role_registrations_refused",
            "Registrations that were refused at a bound of a role, realm or listener",
        ),
        (
            Self::RoleCallsRefused,
            "role_calls_refused",
            "Calls that were refused at a bound of a role, realm or listener",
        ),
        (
            Self::SessionsSlowed,
            "sessions_slowed",
            "Pauses of sessions that sent faster than they may",
        ),
        (
            Self::RecordedEventsEvicted,
            "recorded_events_evicted",
            "Events of histories that made room for newer ones of any, because all together had too many bytes",
        ),
        (
            Self::EventsNotRecorded,
            "events_not_recorded",
            "Events that have more bytes alone than all histories may have, or that a store did not take",
        ),
        (
            Self::EventsDroppedOldest,
            "events_dropped_oldest",
            "Events that waited for a slow session and went for newer ones",
        ),
        (
            Self::SessionsClosedForSlowness,
            "sessions_closed_for_slowness",
            "Sessions closed because they took events more slowly than they came, where their bounds say so",
        ),
        (
            Self::SessionsClosedUnacknowledged,
            "sessions_closed_unacknowledged",
            "Sessions closed because they had too many events to acknowledge",
        ),
        (
            Self::SessionsResumed,
            "sessions_resumed",
            "Sessions that went on over another connection",
        ),
        (
            Self::PublishersHeldBack,
            "publishers_held_back",
            "Pauses of publishers that waited for a slow session",
        ),
    ];
}

/// The counters of one thread. Only that thread writes them, so that counting is a load and a
/// store without a bus lock, whatever other threads do.
#[derive(Debug)]
pub(crate) struct Counters {
    single: [AtomicU64; Counter::ALL.len()],
    left: [AtomicU64; EndReason::ALL.len()],
}

static THREADS: Mutex<Vec<&'static Counters>> = Mutex::new(Vec::new());

/// Of threads that have ended; the next to start go on with them.
static FREE: Mutex<Vec<&'static Counters>> = Mutex::new(Vec::new());

thread_local! {
    static OWN: Cell<Option<&'static Counters>> = const { Cell::new(None) };
    /// Apart from `OWN`, which so needs no look at whether it was destroyed.
    static LENT: Cell<Option<Lent>> = const { Cell::new(None) };
}

/// Counters, for as long as the thread that counts with them runs.
struct Lent(&'static Counters);

impl Drop for Lent {
    fn drop(&mut self) {
        FREE.lock().push(self.0);
    }
}

/// This thread's counters.
pub(crate) fn counters() -> &'static Counters {
    OWN.get().unwrap_or_else(|| {
        // Counts outlive their threads. There are as many sets of them as there were threads at
        // a time, however often routers are started and stopped.
        let free = FREE.lock().pop();
        let own = free.unwrap_or_else(|| {
            let new: &'static Counters = Box::leak(Box::new(Counters::new()));
            THREADS.lock().push(new);
            new
        });
        OWN.set(Some(own));
        LENT.set(Some(Lent(own)));
        own
    })
}

impl Counters {
    fn new() -> Self {
        Self {
            single: [const { AtomicU64::new(0) }; Counter::ALL.len()],
            left: [const { AtomicU64::new(0) }; EndReason::ALL.len()],
        }
    }

    pub(crate) fn count(&self, counter: Counter) {
        self.add(counter, 1);
    }

    pub(crate) fn add(&self, counter: Counter, count: u64) {
        add(&self.single[counter as usize], count);
    }

    /// Counts a session that was not let in at a bound of its role.
    pub(crate) fn refused(&self, why: &JoinError) {
        match why {
            JoinError::RoleSessionsMax { .. } => self.count(Counter::RoleSessionsRefused),
            JoinError::AuthidSessionsMax { .. } => self.count(Counter::AuthidSessionsRefused),
            _ => {}
        }
    }

    /// Counts a session that has left its realm.
    pub(crate) fn left(&self, why: EndReason) {
        self.count(Counter::SessionsLeft);
        add(&self.left[why as usize], 1);
    }
}

fn add(counter: &AtomicU64, count: u64) {
    counter.store(counter.load(Ordering::Relaxed) + count, Ordering::Relaxed);
}

/// What all threads have counted of `counter`.
pub(crate) fn total(counter: Counter) -> u64 {
    sum(|counters| &counters.single[counter as usize])
}

/// The sessions that have left for one reason.
pub(crate) fn total_left(why: EndReason) -> u64 {
    sum(|counters| &counters.left[why as usize])
}

fn sum(of: impl Fn(&'static Counters) -> &'static AtomicU64) -> u64 {
    THREADS
        .lock()
        .iter()
        .map(|thread| of(thread).load(Ordering::Relaxed))
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_in_the_order_of_the_counters() {
        for (place, (counter, ..)) in Counter::ALL.iter().enumerate() {
            assert_eq!(*counter as usize, place);
        }
    }
}
