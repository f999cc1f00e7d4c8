//! A driver's record of its received events, the same for a router's and for the floor's.

use serde::{Deserialize, Serialize};

use super::schedule::Schedule;
use super::server::{Arrival, Reader, Server};
use super::session::{Buffer, Received, Session};
use crate::load::{Faults, Latencies, Recorded, Sequence, Traffic};
use crate::process::WorkerError;

pub(super) struct Subscriber {
    pub(super) session: Session,
    sequence: Sequence,
}

impl Subscriber {
    pub(super) fn new(session: Session, first: u64) -> Self {
        Self {
            session,
            sequence: Sequence::new(first),
        }
    }

    /// Forgets the missing events of an earlier run.
    pub(super) fn begin(&mut self, first: u64) {
        self.sequence = Sequence::new(first);
    }

    /// The number of the next expected event.
    pub(super) fn next(&self) -> u64 {
        self.sequence.next()
    }

    /// The number of publications before `end` that never arrived.
    pub(super) fn lost(&self, end: u64) -> u64 {
        self.sequence.lost(end)
    }
}

/// The record of one process in one run.
pub(super) struct Ledger {
    reader: Reader,
    schedule: Option<Schedule>,
    latencies: Latencies,
    /// All events since the run began.
    pub(super) events: u64,
    in_window: u64,
    bytes_in_window: u64,
    traffic: Traffic,
    pub(super) faults: Faults,
    /// Since the last line of the load client.
    pub(super) since_tick: Since,
    /// A server's last message before it closed, or the reason why it had to be left.
    pub(super) farewell: Option<String>,
}

/// Events since a moment, and the sum of their latencies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Since {
    pub events: u64,
    /// Those whose latency was measured.
    pub timed: u64,
    pub sum_ns: u64,
}

impl Since {
    pub(super) fn add(&mut self, other: Self) {
        self.events += other.events;
        self.timed += other.timed;
        self.sum_ns += other.sum_ns;
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Found {
    pub recorded: Recorded,
    pub events: u64,
    pub events_in_window: u64,
    pub bytes_in_window: u64,
    pub faults: Faults,
    pub traffic: Traffic,
    /// Sessions that the server has closed.
    pub gone: usize,
    pub farewell: Option<String>,
}

impl Ledger {
    pub(super) fn new(server: &Server, payload_bytes: usize) -> Result<Self, WorkerError> {
        Ok(Self {
            reader: Reader::new(server, payload_bytes)?,
            schedule: None,
            latencies: Latencies::default(),
            events: 0,
            in_window: 0,
            bytes_in_window: 0,
            traffic: Traffic::default(),
            faults: Faults::default(),
            since_tick: Since::default(),
            farewell: None,
        })
    }

    pub(super) fn begin(&mut self, schedule: Schedule) {
        self.schedule = Some(schedule);
        self.latencies = Latencies::default();
        (self.events, self.in_window, self.bytes_in_window) = (0, 0, 0);
        self.traffic = Traffic::default();
        self.faults = Faults::default();
        self.since_tick = Since::default();
    }

    /// Reads once from a subscriber's session. `arrived` gets the number and time of every event that arrives for the
    /// first time.
    pub(super) fn receive(
        &mut self,
        subscriber: &mut Subscriber,
        buffer: &mut Buffer,
        mut arrived: impl FnMut(u64, u64),
    ) -> Result<Received, WorkerError> {
        let sequence = &mut subscriber.sequence;
        let mut messages = 0;
        let mut counted = false;
        let received = subscriber.session.receive(buffer, |now_ns, message| {
            messages += 1;
            let number = match self.reader.read(message, sequence.next())? {
                Arrival::Event(number) => number,
                Arrival::Farewell(text) => {
                    self.farewell.get_or_insert(text);
                    return Ok(());
                }
                Arrival::Wrong => {
                    self.faults.wrong += 1;
                    return Ok(());
                }
                Arrival::Published | Arrival::Other => return Ok(()),
            };
            let Some(schedule) = &self.schedule else {
                return Ok(());
            };
            // A late one of the run before, which has been counted as lost there.
            if number < schedule.first || !sequence.arrived(number, &mut self.faults) {
                return Ok(());
            }
            self.events += 1;
            self.since_tick.events += 1;
            counted = schedule.in_window(now_ns);
            self.in_window += u64::from(counted);
            if let Some(from_ns) = schedule.measured_from_ns(number) {
                self.time(now_ns.saturating_sub(from_ns));
            }
            arrived(number, now_ns);
            Ok(())
        })?;
        if let (Received::Bytes(bytes), true) = (received, counted) {
            self.bytes_in_window += bytes as u64;
            self.traffic.reads += 1;
            self.traffic.messages += messages;
        }
        Ok(received)
    }

    pub(super) fn time(&mut self, nanoseconds: u64) {
        self.latencies.record(nanoseconds);
        self.since_tick.timed += 1;
        self.since_tick.sum_ns += nanoseconds;
    }

    /// Ends a run in which publications before `end` were made.
    pub(super) fn found<'a>(
        &mut self,
        subscribers: impl Iterator<Item = &'a Subscriber>,
        gone: usize,
        lost_with_the_gone: u64,
        end: u64,
    ) -> Found {
        let lost: u64 = subscribers.map(|subscriber| subscriber.lost(end)).sum();
        self.faults.lost = lost + lost_with_the_gone;
        self.schedule = None;
        Found {
            recorded: self.latencies.recorded(),
            events: self.events,
            events_in_window: self.in_window,
            bytes_in_window: self.bytes_in_window,
            faults: self.faults,
            traffic: self.traffic,
            gone,
            farewell: self.farewell.clone(),
        }
    }
}
