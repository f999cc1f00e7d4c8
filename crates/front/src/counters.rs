//! The router's counters. Each thread has its own; a report adds them up.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

use crosstie_collections::{Histogram, SharedHistogram};
use crosstie_transport::Budget;
use parking_lot::Mutex;

use crate::end_reason::EndReason;

macro_rules! counters {
    ($($counter:ident = $name:literal, $help:literal;)+) => {
        /// A counter; [`Counter::ALL`] has its name.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Counter {
            $($counter),+
        }

        impl Counter {
            /// Every counter with its name and its help text in the metrics.
            pub const ALL: [(Self, &'static str, &'static str); [$($name),+].len()] =
                [$((Self::$counter, $name, $help)),+];
        }
    };
}

counters! {
    Reads = "reads", "Reads that brought bytes";
    ReceivedBytes = "received_bytes", "Bytes handed to the protocol";
    ConnectionsOpened = "connections_opened", "Connections accepted";
    ConnectionsClosed = "connections_closed", "Connections ended";
    ConnectionsToBulk = "connections_to_bulk", "Moves of a connection to a thread for large messages";
    ConnectionsRefused = "connections_refused", "Connections refused at a limit, or without a session in time";
    ConnectionsRefusedOfAddress = "connections_refused_of_address",
        "Connections refused because their address had reached its limit";
    ConnectionsRefusedForDescriptors = "connections_refused_for_descriptors",
        "Connections refused because the last file descriptors are reserved";
    ConnectionsRefusedForRate = "connections_refused_for_rate",
        "Connections refused beyond their listener's connections per second";
    PageConnectionsRefused = "page_connections_refused",
        "Page requests refused with a retry at the limit of page connections";
    HttpConnectionsRested = "http_connections_rested", "Idle HTTP connections that released their buffers";
    AcceptsFailed = "accepts_failed", "Connections that could not be accepted, mostly without a free file descriptor";
    SessionsJoined = "sessions_joined", "Sessions that joined a realm";
    SessionsLeft = "sessions_left", "Sessions that left their realm";
    SessionsRefused = "sessions_refused", "Sessions that were not admitted to a realm";
    EventsDroppedFull = "events_dropped_full", "Events dropped at a full queue";
    EventsDroppedUnrepresentable = "events_dropped_unrepresentable",
        "Events dropped because the receiver's serializer cannot represent them";
    EventsDroppedOther = "events_dropped_other", "Events for a receiver that was gone or takes no such length";
    MessagesRefused = "messages_refused", "Messages other than events that a receiver did not take";
    SessionsClosedForRefusal = "sessions_closed_for_refusal", "Sessions closed because they did not take an answer";
    ConnectionsClosedForSilence = "connections_closed_for_silence",
        "Connections closed because a ping was not answered";
    ConnectionsClosedUnused = "connections_closed_unused",
        "Connections closed because no byte arrived within the handshake timeout";
    ConnectionsClosedForStall = "connections_closed_for_stall",
        "Connections closed because they read nothing, or next to nothing, of their queued output";
    ConnectionsClosedForSlowInput = "connections_closed_for_slow_input",
        "Connections closed because a message arrived too slowly";
    ConnectionsClosedForDebt = "connections_closed_for_debt",
        "Connections closed because they held the most memory when it reached its bound";
    PeerFaults = "peer_faults", "Connections and channels ended for a fault of the peer";
    LoneSurrogatesReplaced = "lone_surrogates_replaced", "Lone surrogates in JSON text that were replaced by U+FFFD";
    LoneSurrogatesRefused = "lone_surrogates_refused", "Messages refused for lone surrogates in them";
    UnreadableRefused = "unreadable_refused",
        "Messages refused because common WAMP libraries cannot decode their arguments";
    UnreadableConverted = "unreadable_converted",
        "Messages whose arguments were converted so that common WAMP libraries can decode them";
    RetainedEventsEvicted = "retained_events_evicted", "Retained events evicted for newer ones";
    RetainedEventsNotSent = "retained_events_not_sent", "Retained events not sent to a subscription, beyond its bound";
    RequestsDenied = "requests_denied", "Requests that the session's role does not allow";
    AuthorizersAsked = "authorizers_asked", "Calls of authorizers";
    TurnsYielded = "turns_yielded", "Inputs that continued after the turns of others";
    RoleSessionsRefused = "role_sessions_refused", "Sessions refused at a limit of their role, realm or listener";
    AuthidSessionsRefused = "authid_sessions_refused", "Sessions refused at a limit for sessions with one authid";
    RoleSubscriptionsRefused = "role_subscriptions_refused",
        "Subscriptions refused at a limit of a role, realm or listener";
    RoleRegistrationsRefused = "role_registrations_refused",
        "Registrations refused at a limit of a role, realm or listener";
    RoleCallsRefused = "role_calls_refused", "Calls refused at a limit of a role, realm or listener";
    SessionsSlowed = "sessions_slowed", "Pauses of sessions that exceeded their rate limit";
    RecordedEventsEvicted = "recorded_events_evicted",
        "Events of histories evicted because all histories together had too many bytes";
    EventsNotRecorded = "events_not_recorded", "Events larger than the bound of all histories, or not taken by a store";
    EventsDroppedOldest = "events_dropped_oldest", "Queued events of a slow session dropped for newer ones";
    SessionsClosedForSlowness = "sessions_closed_for_slowness",
        "Sessions closed because an event found no room in their queue";
    SessionsClosedUnacknowledged = "sessions_closed_unacknowledged",
        "Sessions closed because they had too many unacknowledged events";
    SessionsResumed = "sessions_resumed", "Sessions resumed over another connection";
    PublishersHeldBack = "publishers_held_back", "Pauses of publishers because of a slow session";
}

/// The counters of one thread. Only that thread writes them, so that counting is a load and a store without a bus lock,
/// whatever other threads do.
#[derive(Debug)]
pub struct Counters {
    single: [AtomicU64; Counter::ALL.len()],
    left: [AtomicU64; EndReason::ALL.len()],
    /// The lengths of turns by [`Spoken`], in microseconds.
    turns: [SharedHistogram; 2],
}

/// The protocol of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spoken {
    Wamp,
    Amqp,
}

static THREADS: Mutex<Vec<&'static Counters>> = Mutex::new(Vec::new());

/// Counters of ended threads, which new threads continue.
static FREE: Mutex<Vec<&'static Counters>> = Mutex::new(Vec::new());

thread_local! {
    static OWN: Cell<Option<&'static Counters>> = const { Cell::new(None) };
    /// Apart from `OWN`, whose access thus needs no check for destruction.
    static LENT: Cell<Option<Lent>> = const { Cell::new(None) };
}

/// A thread's counters, returned when it ends.
struct Lent(&'static Counters);

impl Drop for Lent {
    fn drop(&mut self) {
        FREE.lock().push(self.0);
    }
}

/// This thread's counters.
#[inline]
pub fn counters() -> &'static Counters {
    OWN.get().unwrap_or_else(lend)
}

#[cold]
fn lend() -> &'static Counters {
    // Counters outlive their threads. Their number is that of the most concurrent threads, however often routers
    // start and stop.
    let free = FREE.lock().pop();
    let own = free.unwrap_or_else(|| {
        let new: &'static Counters = Box::leak(Box::new(Counters::new()));
        THREADS.lock().push(new);
        new
    });
    OWN.set(Some(own));
    LENT.set(Some(Lent(own)));
    own
}

impl Counters {
    fn new() -> Self {
        Self {
            single: [const { AtomicU64::new(0) }; Counter::ALL.len()],
            left: [const { AtomicU64::new(0) }; EndReason::ALL.len()],
            turns: [const { SharedHistogram::new() }; 2],
        }
    }

    #[inline]
    pub fn count(&self, counter: Counter) {
        self.add(counter, 1);
    }

    #[inline]
    pub fn add(&self, counter: Counter, count: u64) {
        add(&self.single[counter as usize], count);
    }

    /// Notes the length of a turn that has ended, if it is measured. Returns the microseconds that it stands for then.
    #[inline]
    pub fn end_turn(&self, spoken: Spoken, budget: &Budget) -> Option<u64> {
        let (length, weight) = budget.end()?;
        let us = length.as_micros() as u64;
        self.turns[spoken as usize].note_alone(us, weight);
        Some(us.saturating_mul(weight))
    }

    /// Counts a session that has left its realm.
    pub fn left(&self, why: EndReason) {
        self.count(Counter::SessionsLeft);
        add(&self.left[why as usize], 1);
    }
}

#[inline]
fn add(counter: &AtomicU64, count: u64) {
    counter.store(counter.load(Ordering::Relaxed) + count, Ordering::Relaxed);
}

/// The sum of `counter` over all threads.
pub fn total(counter: Counter) -> u64 {
    sum(|counters| &counters.single[counter as usize])
}

/// Number of sessions that ended for that reason.
pub fn total_left(why: EndReason) -> u64 {
    sum(|counters| &counters.left[why as usize])
}

/// The lengths of turns of all threads, in microseconds.
pub fn turns(spoken: Spoken) -> Histogram {
    let mut all = Histogram::default();
    for thread in &*THREADS.lock() {
        all.add(&thread.turns[spoken as usize].read());
    }
    all
}

fn sum(of: impl Fn(&'static Counters) -> &'static AtomicU64) -> u64 {
    THREADS
        .lock()
        .iter()
        .map(|thread| of(thread).load(Ordering::Relaxed))
        .sum()
}
