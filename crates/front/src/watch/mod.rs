//! Detects dead and silent clients: one sweep per second over all connections.
//!
//! A timer per connection would cost each idle session more memory than its session state; a sweep costs a load per
//! connection and second.

mod judge;

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use crosstie_transport::{Connection, next_second, now_s};
use parking_lot::Mutex;
use slab::Slab;

use crate::cause::Cause;
use crate::connections::Connections;
use crate::counters::{Counter, counters};
use crate::pings::{Pings, whole_seconds};
use crate::report;

/// All connections of a router.
#[derive(Default)]
pub struct Watch {
    entries: Mutex<Slab<Watched>>,
}

struct Watched {
    connection: Arc<Connection>,
    /// The transport of the connection.
    transport: u32,
    since_s: u32,
    phase: Phase,
}

enum Phase {
    /// Between the connection and the session.
    Opening {
        within_s: u32,
        /// The total time for which the client was asked before.
        asked_s: u32,
    },
    /// The client was sent a challenge: the handshake's own time stands still.
    Asked(Box<Asked>),
    Open {
        pings: Arc<Pings>,
        /// A ping that waits for its answer. Never in the first second, so that the niche saves four bytes per
        /// connection.
        pinged_at_s: Option<NonZeroU32>,
    },
    /// The session communicates in requests, whose distance is limited.
    Requests { within_s: u32 },
    /// The client sends something within that time.
    Keeping { within_s: u32 },
    /// Both sides send something each interval, at least heartbeats.
    Beating {
        heartbeat_s: u16,
        heartbeat: &'static Heartbeat,
    },
    /// The last bytes are on their way; the peer shall close its side.
    Closing { within_s: u32 },
}

/// The bytes of a heartbeat.
pub type Heartbeat = [u8; 8];

/// A client that was sent a challenge.
struct Asked {
    client: Box<dyn Unanswered>,
    /// The rest of the handshake's own time.
    left_s: u32,
    /// The client's time in all, and the part used before.
    within_s: u32,
    asked_s: u32,
}

/// The end of a handshake whose client does not answer.
pub trait Unanswered: Send {
    /// Refuses a client that has not answered within that time.
    fn refuse(&self, within_s: u32);
}

/// Closing timeout of connections without an option for it.
pub const CLOSING_MAX: Duration = Duration::from_secs(2);

/// A connection whose peer may still answer.
pub struct Awaited {
    pub connection: Arc<Connection>,
    /// It has a session in a realm, which was sent GOODBYE.
    pub is_session: bool,
}

/// The key of a watched connection.
pub type WatchKey = usize;

impl Watch {
    /// Watches a new connection: it must become a session in time.
    pub fn add(&self, connection: Arc<Connection>, transport: u32, within: Duration) -> WatchKey {
        let phase = Phase::Opening {
            within_s: whole_seconds(within),
            asked_s: 0,
        };
        self.entries.lock().insert(Watched {
            connection,
            transport,
            since_s: now_s(),
            phase,
        })
    }

    /// The session has joined; from now on silence is judged.
    pub fn opened(&self, key: WatchKey, pings: &Arc<Pings>) {
        self.set_phase(
            key,
            Phase::Open {
                pings: Arc::clone(pings),
                pinged_at_s: None,
            },
        );
    }

    /// The session of a client without a connection has joined: it ends after that time without requests.
    pub fn opened_by_requests(&self, key: WatchKey, within_s: u32) {
        self.set_phase(key, Phase::Requests { within_s });
    }

    /// The session of a client has begun that sends something within that time; `None` sets no limit.
    pub fn opened_with_keep_alive(&self, key: WatchKey, within: Option<Duration>) {
        let within_s = within.map_or(u32::MAX, whole_seconds);
        self.set_phase(key, Phase::Keeping { within_s });
    }

    /// The session of a client with heartbeats of these bytes has begun; with 0 seconds, none were negotiated.
    pub fn opened_with_heartbeats(
        &self,
        key: WatchKey,
        heartbeat_s: u16,
        heartbeat: &'static Heartbeat,
    ) {
        self.set_phase(
            key,
            Phase::Beating {
                heartbeat_s,
                heartbeat,
            },
        );
    }

    /// The session has ended; the next must open in time.
    pub fn opening(&self, key: WatchKey, within: Duration) {
        let within_s = whole_seconds(within);
        let asked_s = 0;
        self.set_phase(key, Phase::Opening { within_s, asked_s });
    }

    /// The client was sent a challenge, and has `within` in all. The rest of the handshake's own time is kept for
    /// later: all of `handshake`, if the connection had a session before.
    pub fn asked(
        &self,
        key: WatchKey,
        client: Box<dyn Unanswered>,
        within: Duration,
        handshake: Duration,
    ) {
        if let Some(watched) = self.entries.lock().get_mut(key) {
            let (left_s, asked_s) = match watched.phase {
                Phase::Opening { within_s, asked_s } => {
                    (within_s.saturating_sub(watched.age_s(now_s())), asked_s)
                }
                _ => (whole_seconds(handshake), 0),
            };
            watched.phase = Phase::Asked(Box::new(Asked {
                client,
                left_s,
                within_s: whole_seconds(within),
                asked_s,
            }));
            watched.since_s = now_s();
        }
    }

    /// The client has answered: the handshake's own time continues.
    pub fn going_on(&self, key: WatchKey) {
        if let Some(watched) = self.entries.lock().get_mut(key)
            && let Phase::Asked(asked) = &watched.phase
        {
            watched.phase = Phase::Opening {
                within_s: asked.left_s,
                asked_s: asked.asked_s.saturating_add(watched.age_s(now_s())),
            };
            watched.since_s = now_s();
        }
    }

    /// A ping was answered.
    pub fn answered(&self, key: WatchKey) {
        if let Some(watched) = self.entries.lock().get_mut(key)
            && let Phase::Open { pinged_at_s, .. } = &mut watched.phase
        {
            *pinged_at_s = None;
            watched.since_s = now_s();
        }
    }

    /// The last bytes have been queued; the peer has that time to close its side.
    pub fn closing(&self, key: WatchKey, within: Duration) {
        self.set_phase(
            key,
            Phase::Closing {
                within_s: whole_seconds(within),
            },
        );
    }

    pub fn remove(&self, key: WatchKey) {
        self.entries.lock().try_remove(key);
    }

    /// The connections of `transport`.
    pub fn of(&self, transport: u32) -> Connections {
        let entries = self.entries.lock();
        let of_it = entries.iter().filter(|(_, w)| w.transport == transport);
        of_it.map(|(_, watched)| &watched.connection).collect()
    }

    /// The connections of the transports whose numbers are meant.
    pub fn connections(&self, is_meant: impl Fn(u32) -> bool) -> Vec<Arc<Connection>> {
        let entries = self.entries.lock();
        let meant = entries.iter().filter(|(_, w)| is_meant(w.transport));
        meant.map(|(_, w)| Arc::clone(&w.connection)).collect()
    }

    /// Connections whose peers may still answer a goodbye.
    pub fn awaited(&self) -> Vec<Awaited> {
        let entries = self.entries.lock();
        let awaited = entries.iter().map(|(_, watched)| Awaited {
            connection: Arc::clone(&watched.connection),
            is_session: matches!(watched.phase, Phase::Open { .. } | Phase::Requests { .. }),
        });
        awaited.collect()
    }

    /// Ends the connections of `transport` that never became a session, as no client there could say goodbye. A client
    /// that was told so before and has not closed its socket sees the end.
    pub fn finish_unopened(&self, transport: u32) {
        self.finish_where(|watched| watched.transport == transport);
    }

    /// Does the same to these connections.
    pub fn finish_unopened_of(&self, connections: &Connections) {
        self.finish_where(|watched| connections.has(&watched.connection));
    }

    fn finish_where(&self, is_meant: impl Fn(&Watched) -> bool) {
        for (_, watched) in self.entries.lock().iter() {
            if !is_meant(watched) {
                continue;
            }
            match watched.phase {
                Phase::Opening { .. } | Phase::Asked(_) => {
                    watched.connection.finish();
                    watched.connection.close();
                }
                Phase::Closing { .. } => watched.connection.finish(),
                Phase::Open { .. }
                | Phase::Requests { .. }
                | Phase::Keeping { .. }
                | Phase::Beating { .. } => {}
            }
        }
    }

    /// Closes the clients among these that come back after a bare end, and take any goodbye for final: those with a keep
    /// alive.
    pub fn close_kept_alive(&self, is_meant: impl Fn(u32, &Arc<Connection>) -> bool) {
        let entries = self.entries.lock();
        let kept = entries.iter().map(|(_, watched)| watched);
        let kept = kept.filter(|w| matches!(w.phase, Phase::Keeping { .. }));
        let meant = kept.filter(|w| is_meant(w.transport, &w.connection));
        let meant: Vec<_> = meant.map(|w| Arc::clone(&w.connection)).collect();
        drop(entries);
        for connection in &meant {
            Cause::Stop.note(connection);
            connection.finish_and_close();
        }
    }

    /// Closes the remaining connections of `transport`.
    pub fn close_all(&self, transport: u32) {
        for (_, watched) in self.entries.lock().iter() {
            if watched.transport == transport {
                watched.connection.close();
            }
        }
    }

    /// Sweeps once a second, forever. While `is_crowded` returns that too many handshakes are pending, none may wait
    /// long for its client.
    pub async fn run(&self, is_crowded: impl Fn() -> bool) {
        loop {
            next_second().await;
            self.sweep(now_s(), is_crowded());
            crosstie_transport::uncork();
        }
    }

    fn set_phase(&self, key: WatchKey, phase: Phase) {
        if let Some(watched) = self.entries.lock().get_mut(key) {
            watched.phase = phase;
            watched.since_s = now_s();
        }
    }

    /// Sweeps all connections in portions, so that other threads wait for a portion at most.
    fn sweep(&self, now_s: u32, is_crowded: bool) {
        let mut next = 0;
        loop {
            let mut faults = Vec::new();
            let mut overdue = Vec::new();
            {
                let mut entries = self.entries.lock();
                let end = next + SWEEP_MAX;
                for key in next..end.min(entries.capacity()) {
                    let Some(watched) = entries.get_mut(key) else {
                        continue;
                    };
                    watched.connection.give_up_unused(now_s);
                    if let Some(fault) = watched.judge(now_s) {
                        faults.push((Arc::clone(&watched.connection), fault));
                    } else {
                        overdue.extend(watched.take_overdue(now_s, is_crowded));
                    }
                }
                next = end;
                if next >= entries.capacity() {
                    next = 0;
                    give_back(&mut entries);
                }
            }
            for asked in overdue {
                asked.client.refuse(asked.within_s);
            }
            for (connection, (counter, cause)) in faults {
                counters().count(counter);
                match counter {
                    Counter::ConnectionsClosedUnused => {
                        tracing::debug!(peer = %connection.peer(), "connection closed: {UNUSED}");
                    }
                    _ => report::timed_out(&connection, cause),
                }
                connection.close();
            }
            if next == 0 {
                return;
            }
        }
    }
}

/// Returns the memory of places behind the last connection if most connections have left. Looking for that one takes each
/// vacant place once: a slab without places behind it is left as it is.
fn give_back(entries: &mut Slab<Watched>) {
    if entries.capacity() >= PLACES_MIN && entries.len() < entries.capacity() / 8 {
        entries.shrink_to_fit();
    }
}

/// Reports a connection that the system gave up before the watch did, as its peer did not read.
pub fn look_given_up(connection: &Connection) {
    if connection.was_given_up() && Cause::noted(connection).is_none() {
        counters().count(Counter::ConnectionsClosedForStall);
        report::timed_out(connection, Cause::NoRead);
    }
}

/// The log's text about a peer that has sent nothing.
const UNUSED: &str = "it sent no byte within the time of a handshake";

/// Maximum number of connections visited under one lock.
const SWEEP_MAX: usize = 1024;

/// A slab of fewer places keeps its memory.
const PLACES_MIN: usize = 128;

#[cfg(test)]
mod tests;
