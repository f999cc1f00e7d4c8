//! What the router counts. Each thread counts for itself; a report adds the threads up.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crosstie_routing::Refused;
use crosstie_wamp::MessageType;
use parking_lot::Mutex;

/// Message types are below this code.
const CODES: usize = 71;

/// The counters of one thread. Only that thread writes them, so that counting is a load and a
/// store without a bus lock, whatever other threads do.
#[derive(Debug)]
pub(crate) struct Counters {
    received: [AtomicU64; CODES],
    sent: [AtomicU64; CODES],
    reads: AtomicU64,
    received_bytes: AtomicU64,
    connections_opened: AtomicU64,
    connections_closed: AtomicU64,
    connections_refused: AtomicU64,
    sessions_joined: AtomicU64,
    sessions_left: AtomicU64,
    events_dropped_full: AtomicU64,
    events_dropped_unrepresentable: AtomicU64,
    events_dropped_other: AtomicU64,
    messages_refused: AtomicU64,
    closed_for_refusal: AtomicU64,
    closed_for_silence: AtomicU64,
    closed_for_stall: AtomicU64,
    peer_faults: AtomicU64,
}

/// Every thread's counters, added up.
#[derive(Clone, Debug)]
pub(crate) struct Totals {
    pub(crate) received: Vec<(MessageType, u64)>,
    pub(crate) sent: Vec<(MessageType, u64)>,
    pub(crate) reads: u64,
    pub(crate) received_bytes: u64,
    pub(crate) connections_opened: u64,
    pub(crate) connections_closed: u64,
    pub(crate) connections_refused: u64,
    pub(crate) sessions_joined: u64,
    pub(crate) sessions_left: u64,
    pub(crate) events_dropped_full: u64,
    pub(crate) events_dropped_unrepresentable: u64,
    pub(crate) events_dropped_other: u64,
    pub(crate) messages_refused: u64,
    pub(crate) closed_for_refusal: u64,
    pub(crate) closed_for_silence: u64,
    pub(crate) closed_for_stall: u64,
    pub(crate) peer_faults: u64,
}

static THREADS: Mutex<Vec<Arc<Counters>>> = Mutex::new(Vec::new());

thread_local! {
    static OWN: Cell<Option<&'static Counters>> = const { Cell::new(None) };
}

/// This thread's counters.
pub(crate) fn counters() -> &'static Counters {
    OWN.get().unwrap_or_else(|| {
        // Threads live as long as the node does; their counters stay for the totals.
        let own: &'static Arc<Counters> = Box::leak(Box::new(Arc::new(Counters::new())));
        THREADS.lock().push(Arc::clone(own));
        OWN.set(Some(own));
        own
    })
}

fn add(counter: &AtomicU64, count: u64) {
    counter.store(counter.load(Ordering::Relaxed) + count, Ordering::Relaxed);
}

impl Counters {
    fn new() -> Self {
        Self {
            received: [const { AtomicU64::new(0) }; CODES],
            sent: [const { AtomicU64::new(0) }; CODES],
            reads: AtomicU64::new(0),
            received_bytes: AtomicU64::new(0),
            connections_opened: AtomicU64::new(0),
            connections_closed: AtomicU64::new(0),
            connections_refused: AtomicU64::new(0),
            sessions_joined: AtomicU64::new(0),
            sessions_left: AtomicU64::new(0),
            events_dropped_full: AtomicU64::new(0),
            events_dropped_unrepresentable: AtomicU64::new(0),
            events_dropped_other: AtomicU64::new(0),
            messages_refused: AtomicU64::new(0),
            closed_for_refusal: AtomicU64::new(0),
            closed_for_silence: AtomicU64::new(0),
            closed_for_stall: AtomicU64::new(0),
            peer_faults: AtomicU64::new(0),
        }
    }

    pub(crate) fn received(&self, kind: MessageType) {
        add(&self.received[kind as usize], 1);
    }

    pub(crate) fn sent(&self, kind: MessageType) {
        add(&self.sent[kind as usize], 1);
    }

    pub(crate) fn read(&self, bytes: usize) {
        add(&self.reads, 1);
        add(&self.received_bytes, bytes as u64);
    }

    pub(crate) fn connection_opened(&self) {
        add(&self.connections_opened, 1);
    }

    pub(crate) fn connection_closed(&self) {
        add(&self.connections_closed, 1);
    }

    pub(crate) fn connection_refused(&self) {
        add(&self.connections_refused, 1);
    }

    pub(crate) fn session_joined(&self) {
        add(&self.sessions_joined, 1);
    }

    pub(crate) fn session_left(&self) {
        add(&self.sessions_left, 1);
    }

    pub(crate) fn dropped(&self, refused: Refused) {
        add(
            match refused {
                Refused::Full => &self.events_dropped_full,
                Refused::Unrepresentable(_) => &self.events_dropped_unrepresentable,
                Refused::Gone | Refused::TooLong => &self.events_dropped_other,
            },
            1,
        );
    }

    pub(crate) fn refused(&self, _: Refused) {
        add(&self.messages_refused, 1);
    }

    pub(crate) fn closed_for_refusal(&self) {
        add(&self.closed_for_refusal, 1);
    }

    pub(crate) fn closed_for_silence(&self) {
        add(&self.closed_for_silence, 1);
    }

    pub(crate) fn closed_for_stall(&self) {
        add(&self.closed_for_stall, 1);
    }

    pub(crate) fn peer_fault(&self) {
        add(&self.peer_faults, 1);
    }
}

/// What all threads have counted so far.
pub(crate) fn totals() -> Totals {
    let threads = THREADS.lock();
    let sum = |counter: fn(&Counters) -> &AtomicU64| {
        threads
            .iter()
            .map(|thread| counter(thread).load(Ordering::Relaxed))
            .sum::<u64>()
    };
    let by_type = |counters: fn(&Counters) -> &[AtomicU64; CODES]| {
        let total = |kind: MessageType| {
            threads
                .iter()
                .map(|t| counters(t)[kind as usize].load(Ordering::Relaxed))
                .sum::<u64>()
        };
        MessageType::ALL
            .into_iter()
            .map(|kind| (kind, total(kind)))
            .collect()
    };
    Totals {
        received: by_type(|c| &c.received),
        sent: by_type(|c| &c.sent),
        reads: sum(|c| &c.reads),
        received_bytes: sum(|c| &c.received_bytes),
        connections_opened: sum(|c| &c.connections_opened),
        connections_closed: sum(|c| &c.connections_closed),
        connections_refused: sum(|c| &c.connections_refused),
        sessions_joined: sum(|c| &c.sessions_joined),
        sessions_left: sum(|c| &c.sessions_left),
        events_dropped_full: sum(|c| &c.events_dropped_full),
        events_dropped_unrepresentable: sum(|c| &c.events_dropped_unrepresentable),
        events_dropped_other: sum(|c| &c.events_dropped_other),
        messages_refused: sum(|c| &c.messages_refused),
        closed_for_refusal: sum(|c| &c.closed_for_refusal),
        closed_for_silence: sum(|c| &c.closed_for_silence),
        closed_for_stall: sum(|c| &c.closed_for_stall),
        peer_faults: sum(|c| &c.peer_faults),
    }
}
