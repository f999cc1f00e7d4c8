//! The driver of messages: one thread and one epoll for all publishers and subscribers, each with a connection of its
//! own. A bound limits the messages that are published and not yet arrived everywhere, or not yet acknowledged.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use crosstie_mqtt::{Ack, Packet, Properties, Publish};
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;
use rustix::time::Timespec;

use super::arrivals::{Arrivals, answer};
use super::clock::Clock;
use super::flight::Flight;
use super::order::{LoadFinding, LoadOrder, kept_max};
use super::wire::{Dial, Received, Scratch, Session, Wire};
use crate::load::{Body, Latencies, Window, monotonic_ns};
use crate::process::WorkerError;

/// How long a wait lasts before the driver checks for the end.
const LOOK: Duration = Duration::from_millis(100);
/// How long the last messages may take, without any progress.
const LATE_MAX_NS: u64 = 10_000_000_000;
/// The timer among the connections of an epoll.
const CLOCK: u64 = u64::MAX;

struct Publisher {
    wire: Wire,
    topic: String,
    body: Body,
    flight: Flight,
    published: u64,
}

pub(super) struct Load<'a> {
    order: &'a LoadOrder,
    epoll: OwnedFd,
    scratch: Scratch,
    publishers: Vec<Publisher>,
    subscribers: Vec<(Wire, Arrivals)>,
    clock: Option<Clock>,
    window: Window,
    /// When the last wait returned, and when anything came last.
    now_ns: u64,
    progress_ns: u64,
    /// The publisher whose turn is next.
    turn: usize,
    /// Messages of all subscribers, and publications that were acknowledged, warm-up and tail included.
    arrived: u64,
    ended: u64,
    latencies: Latencies,
    waits: u64,
    calls_before: Option<u64>,
    found: LoadFinding,
}

impl<'a> Load<'a> {
    /// Connects all, subscribers first.
    pub(super) fn connect(order: &'a LoadOrder, dial: &Dial) -> Result<Self, WorkerError> {
        let mut load = Self {
            order,
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC).map_err(io::Error::from)?,
            scratch: Scratch::new(),
            publishers: Vec::with_capacity(order.publishers),
            subscribers: Vec::with_capacity(order.subscribers),
            clock: None,
            window: Window {
                start_ns: 0,
                end_ns: 0,
            },
            now_ns: 0,
            progress_ns: 0,
            turn: 0,
            arrived: 0,
            ended: 0,
            latencies: Latencies::default(),
            waits: 0,
            calls_before: None,
            found: LoadFinding::default(),
        };
        load.connect_subscribers(dial)?;
        load.connect_publishers(dial)?;
        Ok(load)
    }

    fn connect_subscribers(&mut self, dial: &Dial) -> Result<(), WorkerError> {
        let order = self.order;
        for at in 0..order.subscribers {
            let mut wire = dial.open(Session {
                client_id: &order.client_id("s", at),
                clean_start: true,
                is_kept: order.is_kept,
            })?;
            wire.subscribe(&order.filter(), order.qos()?)?;
            if order.is_away {
                wire.leave()?;
                continue;
            }
            self.watch(&wire, order.publishers + at)?;
            self.subscribers.push((wire, Arrivals::new(order)?));
        }
        Ok(())
    }

    fn connect_publishers(&mut self, dial: &Dial) -> Result<(), WorkerError> {
        let order = self.order;
        for at in 0..order.publishers {
            let wire = dial.open(Session {
                client_id: &order.client_id("p", at),
                clean_start: true,
                is_kept: false,
            })?;
            self.watch(&wire, at)?;
            self.publishers.push(Publisher {
                topic: order.topic_of(at),
                body: Body::new(at, order.payload_bytes),
                flight: Flight::new(order.qos()?, wire.receive_max()),
                published: 0,
                wire,
            });
        }
        Ok(())
    }

    fn watch(&self, wire: &Wire, at: usize) -> Result<(), WorkerError> {
        let data = EventData::new_u64(at as u64);
        let added = epoll::add(&self.epoll, wire, data, EventFlags::IN);
        Ok(added.map_err(io::Error::from)?)
    }

    /// Publishes until the window ends, and waits for the last messages.
    pub(super) fn run(&mut self, window: Window) -> Result<(), WorkerError> {
        self.window = window;
        self.now_ns = monotonic_ns();
        self.progress_ns = self.now_ns;
        if let Some(rate) = self.order.rate {
            let clock = Clock::start(rate, self.now_ns)?;
            let data = EventData::new_u64(CLOCK);
            epoll::add(&self.epoll, &clock, data, EventFlags::IN).map_err(io::Error::from)?;
            self.clock = Some(clock);
        }
        let mut ready = Vec::with_capacity(256);
        while !self.is_over() {
            if self.clock.is_none() {
                self.publish(self.free())?;
            }
            ready.clear();
            self.wait(&mut ready)?;
            let mut due = 0;
            for event in &ready {
                match (event.data.u64(), &self.clock) {
                    (CLOCK, Some(clock)) => due = clock.due()?,
                    (at, _) => self.advance(at as usize)?,
                }
            }
            self.publish(due)?;
        }
        Ok(())
    }

    fn wait(&mut self, ready: &mut Vec<epoll::Event>) -> Result<(), WorkerError> {
        let patience = Timespec::try_from(LOOK).unwrap_or_default();
        match epoll::wait(&self.epoll, spare_capacity(ready), Some(&patience)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(io::Error::from(error).into()),
        }
        self.waits += 1;
        let before_ns = std::mem::replace(&mut self.now_ns, monotonic_ns());
        if self.calls_before.is_none() && self.now_ns >= self.window.start_ns {
            self.calls_before = Some(self.calls());
        }
        let ends_here = before_ns < self.window.end_ns && self.now_ns >= self.window.end_ns;
        if let Some(before) = self.calls_before.filter(|_| ends_here) {
            self.found.calls = self.calls() - before;
        }
        Ok(())
    }

    /// System calls of all connections, and the waits for them.
    fn calls(&self) -> u64 {
        let publishers = self.publishers.iter().map(|one| one.wire.calls);
        let subscribers = self.subscribers.iter().map(|(wire, _)| wire.calls);
        self.waits + publishers.chain(subscribers).sum::<u64>()
    }

    /// One connection is readable, or takes octets again.
    fn advance(&mut self, at: usize) -> Result<(), WorkerError> {
        let received = match at.checked_sub(self.order.publishers) {
            None => self.read_acknowledgements(at)?,
            Some(at) => self.read_messages(at)?,
        };
        if received == Received::Something {
            self.progress_ns = self.now_ns;
        }
        self.flush(at)
    }

    fn read_acknowledgements(&mut self, at: usize) -> Result<Received, WorkerError> {
        let is_within = self.is_within();
        let (ended, found) = (&mut self.ended, &mut self.found);
        let Publisher { wire, flight, .. } = &mut self.publishers[at];
        let mut end = |ack: &Ack<'_>, flight: &mut Flight, found: &mut LoadFinding| {
            if flight.end(ack.packet_id, &mut found.faults) {
                *ended += 1;
                found.acknowledged += u64::from(is_within);
            }
        };
        wire.receive(&mut self.scratch, |out, packet| {
            match packet {
                Packet::PubAck(ack) | Packet::PubComp(ack) => end(ack, flight, found),
                Packet::PubRec(ack) => {
                    flight.release(ack.packet_id, &mut found.faults);
                    out.push(&Packet::PubRel(Ack::success(ack.packet_id)))?;
                }
                _ => {}
            }
            if let Packet::PubAck(ack) | Packet::PubRec(ack) = packet {
                found.faults.failed += u64::from(ack.reason.is_error());
            }
            Ok(())
        })
    }

    fn read_messages(&mut self, at: usize) -> Result<Received, WorkerError> {
        let (is_within, window, now_ns) = (self.is_within(), self.window, self.now_ns);
        let (wire, arrivals) = &mut self.subscribers[at];
        let (latencies, clock) = (&mut self.latencies, &self.clock);
        let faults = &mut self.found.faults;
        let mut count = 0;
        let received = wire.receive(&mut self.scratch, |out, packet| {
            if let Packet::Publish(message) = packet
                && let Some(number) = arrivals.take(message, faults)
            {
                count += 1;
                let due_ns = clock.as_ref().map(|clock| clock.due_ns(number));
                let in_window = |due: &u64| (window.start_ns..window.end_ns).contains(due);
                if let Some(due_ns) = due_ns.filter(in_window) {
                    latencies.record(now_ns.saturating_sub(due_ns));
                }
            }
            match answer(packet) {
                Some(answer) => out.push(&answer),
                None => Ok(()),
            }
        })?;
        self.arrived += count;
        if is_within && received == Received::Something {
            self.found.traffic.reads += 1;
            self.found.traffic.messages += count;
        }
        Ok(received)
    }

    /// Writes what one connection has to send, and watches for space if its socket has none.
    fn flush(&mut self, at: usize) -> Result<(), WorkerError> {
        let wire = match at.checked_sub(self.order.publishers) {
            None => &mut self.publishers[at].wire,
            Some(at) => &mut self.subscribers[at].0,
        };
        let awaits_space = !wire.flush()?;
        if awaits_space != wire.awaits_space {
            wire.awaits_space = awaits_space;
            let mut flags = EventFlags::IN;
            flags.set(EventFlags::OUT, awaits_space);
            let data = EventData::new_u64(at as u64);
            epoll::modify(&self.epoll, &*wire, data, flags).map_err(io::Error::from)?;
        }
        Ok(())
    }

    /// Publishes so many messages, in turn from all publishers.
    fn publish(&mut self, count: u64) -> Result<(), WorkerError> {
        if count == 0 || !self.may_publish() {
            return Ok(());
        }
        let publishers = self.publishers.len();
        for _ in 0..count {
            let at = self.turn;
            let one = &mut self.publishers[at];
            let Some(delivery) = one.flight.begin() else {
                break;
            };
            let message = Publish {
                delivery,
                dup: false,
                retain: false,
                topic: &one.topic,
                properties: Properties::EMPTY,
                payload: one.body.numbered(one.published),
            };
            one.wire.out.push(&Packet::Publish(message))?;
            one.published += 1;
            self.found.published += 1;
            self.turn = (at + 1) % publishers;
            // A lone publisher's messages leave in one write.
            if publishers > 1 {
                self.flush(at)?;
            }
        }
        match publishers {
            1 => self.flush(0),
            _ => Ok(()),
        }
    }

    /// How many messages may be published now: none until a quarter of the bound is free. In smaller steps each message
    /// would cost a write.
    fn free(&self) -> u64 {
        let outstanding = self.order.outstanding;
        let free = outstanding.saturating_sub(self.under_way().max(self.unacknowledged()));
        match free >= (outstanding / 4).max(1) {
            true => free,
            false => 0,
        }
    }

    fn may_publish(&mut self) -> bool {
        if self.now_ns >= self.window.end_ns {
            return false;
        }
        let is_full =
            self.order.is_away && self.found.published >= kept_max(self.order.payload_bytes);
        self.found.is_full |= is_full;
        !is_full
    }

    /// Publications that have not arrived at all subscribers.
    fn under_way(&self) -> u64 {
        let subscribers = self.subscribers.len() as u64;
        let missing = (self.found.published * subscribers).saturating_sub(self.arrived);
        missing.div_ceil(subscribers.max(1))
    }

    fn unacknowledged(&self) -> u64 {
        match self.order.qos {
            0 => 0,
            _ => self.found.published - self.ended,
        }
    }

    fn is_within(&self) -> bool {
        (self.window.start_ns..self.window.end_ns).contains(&self.now_ns)
    }

    fn is_over(&self) -> bool {
        let is_late = self.now_ns.saturating_sub(self.progress_ns) > LATE_MAX_NS;
        let is_done = self.under_way() == 0 && self.unacknowledged() == 0;
        self.now_ns >= self.window.end_ns && (is_done || is_late)
    }

    /// Disconnects all; returns the results, and the number of each publisher's messages.
    pub(super) fn finish(mut self) -> Result<(LoadFinding, Vec<u64>), WorkerError> {
        let published: Vec<u64> = self.publishers.iter().map(|one| one.published).collect();
        self.found.faults.lost += self.unacknowledged();
        for (wire, arrivals) in self.subscribers {
            self.found.faults.lost += arrivals.lost(&published);
            wire.leave()?;
        }
        for publisher in self.publishers {
            publisher.wire.leave()?;
        }
        self.found.times = self.latencies.recorded();
        Ok((self.found, published))
    }
}
