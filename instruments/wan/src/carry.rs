//! The delay line at work: one thread, one `epoll`, one timer.
//!
//! ```text
//!  event ─▶ note the socket's readiness ─▶ wait in line ─▶ read ─▶ Queue ─▶ due ─▶ deliver
//!                                         (Line: rate)            (timers)
//! ```
//!
//! Times are the monotonic clock's nanoseconds; the timer is a `timerfd` for the next of them, because the timeouts of
//! `epoll` itself are whole milliseconds.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;
use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime,
    timerfd_create, timerfd_settime,
};

use crate::connection::{At, CLIENT, Connection, DOWN, Outcome, SERVER, UP, Way, target};
use crate::cut::{Calendar, Fault};
use crate::endpoint::Endpoint;
use crate::line::{Line, Pool, READ_BYTES_MAX};
use crate::listener::Listener;
use crate::options::{Direction, LinkOptions};
use crate::queue::Mark;
use crate::statistics::Statistics;

/// The meaning of an event; other numbers are a connection's, twice, plus its end.
const LISTENER: u64 = u64::MAX;
const TIMER: u64 = u64::MAX - 1;
const STOP: u64 = u64::MAX - 2;

/// Maximum number of accepts before existing connections have their turn.
const ACCEPTED_AT_ONCE_MAX: usize = 64;
const EVENTS_MAX: usize = 256;

/// A full backlog of a Unix socket gives no event when it has room again.
const RETRY_NS: u64 = 1_000_000;

/// A longer wake-up was delayed by other processes, which no timer can foresee.
const WAKEUP_NS_MAX: u64 = 100_000;

/// A timed event of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    /// The client's handshake would be over.
    Open,
    /// Bytes arrive in this direction.
    Arrival(Way),
    /// The next attempt to connect to the server.
    Retry,
    /// A reset arrives.
    Reset,
}

pub(crate) struct Carrier {
    epoll: OwnedFd,
    timer: OwnedFd,
    /// The timer's setting.
    timer_ns: u64,
    listener: Listener,
    server: Endpoint,
    connections: HashMap<u64, Connection>,
    next_id: u64,
    timers: BinaryHeap<Reverse<(u64, u64, Timer)>>,
    lines: [Line; 2],
    /// The connections to be read in each direction, in turn.
    turns: [VecDeque<u64>; 2],
    pool: Pool,
    calendar: Calendar,
    /// When the last silence ended: bytes that came due in it are not late by the line's fault.
    resumed_ns: u64,
    acceptable: bool,
    /// No descriptors were left; a connection must end first.
    exhausted: bool,
    /// When this thread last began to wait.
    asleep_ns: u64,
    /// The known delay of this thread's wake-up after the timer's setting.
    wakeup_ns: u64,
    /// The directions whose lateness counts: those with a delay, or both if neither has one.
    measured: [bool; 2],
    statistics: Statistics,
    buffer: Vec<u8>,
}

impl Carrier {
    pub(crate) fn new(
        listener: Listener,
        server: Endpoint,
        options: &LinkOptions,
    ) -> io::Result<Self> {
        let now_ns = monotonic_ns();
        let line = |delayed: bool, seed: u64| {
            let (delay, jitter) = match delayed {
                true => (options.delay, options.jitter),
                false => Default::default(),
            };
            Line::new(delay, jitter, options.rate, now_ns ^ seed)
        };
        let lines = [
            line(options.direction != Direction::Down, 1),
            line(options.direction != Direction::Up, 2),
        ];
        let [up, down] = &lines;
        let pool = Pool::new(up.product_bytes().max(down.product_bytes()));
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let timer = timerfd_create(
            TimerfdClockId::Monotonic,
            TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK,
        )?;
        let edge = EventFlags::IN | EventFlags::ET;
        epoll::add(&epoll, &timer, EventData::new_u64(TIMER), edge)?;
        epoll::add(&epoll, &listener, EventData::new_u64(LISTENER), edge)?;
        Ok(Self {
            epoll,
            timer,
            timer_ns: 0,
            listener,
            server,
            connections: HashMap::new(),
            next_id: 0,
            timers: BinaryHeap::new(),
            lines,
            turns: Default::default(),
            pool,
            calendar: Calendar::new(&options.cuts, now_ns),
            resumed_ns: 0,
            acceptable: true,
            exhausted: false,
            measured: [Direction::Down, Direction::Up]
                .map(|other| options.delay.is_zero() || options.direction != other),
            asleep_ns: 0,
            wakeup_ns: 0,
            statistics: Statistics::default(),
            buffer: vec![0; READ_BYTES_MAX],
        })
    }

    /// Runs until `stop` is readable, or its other side is closed.
    pub(crate) fn run(
        mut self,
        stop: BorrowedFd<'_>,
        notice: &mut dyn FnMut(&str),
    ) -> io::Result<Statistics> {
        epoll::add(&self.epoll, stop, EventData::new_u64(STOP), EventFlags::IN)?;
        let mut events = Vec::with_capacity(EVENTS_MAX);
        loop {
            let now_ns = monotonic_ns();
            while let Some(fault) = self.calendar.next_fault(now_ns) {
                self.suffer(fault, now_ns);
            }
            if !self.calendar.is_silent() {
                self.fire(now_ns);
                self.take_turns(now_ns);
            }
            self.accept(now_ns, notice)?;
            events.clear();
            self.wait(&mut events)?;
            let now_ns = monotonic_ns();
            for event in &events {
                match event.data.u64() {
                    STOP => return Ok(self.statistics),
                    LISTENER => self.acceptable = true,
                    TIMER => self.learn(now_ns),
                    data => self.note(data / 2, (data % 2) as At, event.flags, now_ns),
                }
            }
        }
    }

    /// Waits for events, or for the next due time.
    fn wait(&mut self, events: &mut Vec<epoll::Event>) -> io::Result<()> {
        let next_ns = self.next_ns();
        self.asleep_ns = monotonic_ns();
        let at_once = (self.acceptable && !self.exhausted)
            || next_ns.saturating_sub(self.wakeup_ns) <= self.asleep_ns;
        if !at_once && next_ns != u64::MAX {
            self.set_timer(next_ns - self.wakeup_ns)?;
        }
        let timeout = Timespec::default();
        let spare = rustix::buffer::spare_capacity(events);
        match epoll::wait(&self.epoll, spare, at_once.then_some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn next_ns(&self) -> u64 {
        let cut = self.calendar.next_ns();
        let mut next_ns = cut.unwrap_or(u64::MAX);
        if self.calendar.is_silent() {
            return next_ns;
        }
        if let Some(Reverse((due_ns, ..))) = self.timers.peek() {
            next_ns = next_ns.min(*due_ns);
        }
        for (line, turns) in self.lines.iter().zip(&self.turns) {
            if !turns.is_empty() {
                next_ns = next_ns.min(line.accepts_ns());
            }
        }
        next_ns
    }

    fn set_timer(&mut self, at_ns: u64) -> io::Result<()> {
        if at_ns == self.timer_ns {
            return Ok(());
        }
        let value = Itimerspec {
            it_interval: Timespec::default(),
            it_value: Timespec {
                tv_sec: (at_ns / 1_000_000_000).cast_signed(),
                tv_nsec: (at_ns % 1_000_000_000).cast_signed(),
            },
        };
        timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &value)?;
        self.timer_ns = at_ns;
        Ok(())
    }

    /// The timer is set earlier by its measured delay: on a virtual machine a sleeping core takes tens of microseconds
    /// to wake. The remaining time is spent polling the clock.
    fn learn(&mut self, now_ns: u64) {
        // A timer that expired while this thread was at work measures nothing.
        if self.asleep_ns < self.timer_ns {
            let late_ns = now_ns.saturating_sub(self.timer_ns).min(WAKEUP_NS_MAX);
            self.wakeup_ns = (self.wakeup_ns * 15 + late_ns) / 16;
        }
        self.timer_ns = 0;
    }

    fn accept(&mut self, now_ns: u64, notice: &mut dyn FnMut(&str)) -> io::Result<()> {
        for _ in 0..ACCEPTED_AT_ONCE_MAX {
            if !self.acceptable || self.exhausted {
                return Ok(());
            }
            match self.listener.accept() {
                Ok(socket) => self.welcome(Connection::new(socket), now_ns),
                Err(Errno::AGAIN) => self.acceptable = false,
                Err(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM) => {
                    self.exhausted = true;
                    notice(&format!(
                        "no descriptors left at {} connections, which take two each; newcomers \
                         wait until somebody goes (raise `ulimit -n`)",
                        self.connections.len()
                    ));
                }
                // The client ended before it was accepted.
                Err(Errno::CONNABORTED | Errno::INTR | Errno::PROTO) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn welcome(&mut self, mut connection: Connection, now_ns: u64) {
        if self.calendar.is_refusing(now_ns) {
            self.statistics.refused += 1;
            connection.reset(CLIENT);
            return;
        }
        let id = self.next_id;
        self.next_id += 1;
        if connection.watch(CLIENT, &self.epoll, id * 2).is_err() {
            self.statistics.refused += 1;
            return;
        }
        let [up, down] = &mut self.lines;
        let round_trip_ns = up.latency_ns() + down.latency_ns();
        self.timers
            .push(Reverse((now_ns + round_trip_ns, id, Timer::Open)));
        self.connections.insert(id, connection);
        self.statistics.connections += 1;
        let at_once = self.connections.len();
        self.statistics.connections_max = self.statistics.connections_max.max(at_once);
    }

    /// Handles all due timers.
    fn fire(&mut self, now_ns: u64) {
        while let Some(Reverse((due_ns, id, timer))) = self.timers.peek().copied() {
            if due_ns > now_ns {
                break;
            }
            self.timers.pop();
            let Some(connection) = self.connections.get_mut(&id) else {
                continue;
            };
            match timer {
                Timer::Open => {
                    connection.open = true;
                    let due_ns = self.lines[UP].send(0, due_ns.max(self.resumed_ns));
                    connection.queues[UP].mark(Mark::Connect, due_ns);
                    if connection.ends[CLIENT].is_gone() {
                        self.lose(id, CLIENT, now_ns);
                    }
                    self.deliver(id, UP, now_ns);
                    self.stand_in_line(id, CLIENT);
                }
                Timer::Arrival(way) => {
                    connection.armed[way] = false;
                    self.deliver(id, way, now_ns);
                }
                Timer::Retry => self.connect(id, now_ns),
                Timer::Reset => {
                    self.statistics.resets += 1;
                    self.remove(id);
                }
            }
        }
    }

    /// Reads from the waiting connections, each once, as far as the lines accept.
    fn take_turns(&mut self, now_ns: u64) {
        for way in [UP, DOWN] {
            for _ in 0..self.turns[way].len() {
                if self.lines[way].accepts_ns() > now_ns {
                    break;
                }
                let Some(id) = self.turns[way].pop_front() else {
                    break;
                };
                if let Some(connection) = self.connections.get_mut(&id) {
                    connection.ends[way].in_line = false;
                    self.read(id, way);
                }
            }
        }
    }

    fn read(&mut self, id: u64, way: Way) {
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        let room = self.pool.room(connection.queues[way].held());
        let length = room.min(self.lines[way].read_bytes_max());
        if length == 0 || !connection.wants_to_read(way) {
            return;
        }
        let outcome = connection.read(way, &mut self.buffer[..length]);
        let now_ns = monotonic_ns();
        let line = &mut self.lines[way];
        let queue = &mut connection.queues[way];
        match outcome {
            Outcome::Moved(length) => {
                let due_ns = line.send(length, now_ns);
                queue.push(&self.buffer[..length], due_ns);
            }
            Outcome::Ended => queue.mark(Mark::End, line.send(0, now_ns)),
            Outcome::Gone => return self.lose(id, way, now_ns),
            _ => {}
        }
        self.deliver(id, way, now_ns);
        self.stand_in_line(id, way);
    }

    /// Delivers everything that has arrived in a direction, and schedules the rest.
    fn deliver(&mut self, id: u64, way: Way, mut now_ns: u64) {
        loop {
            let Some(connection) = self.connections.get_mut(&id) else {
                return;
            };
            let allowance = self.calendar.allowance();
            let (lateness, resumed_ns) = (&mut self.statistics.lateness, self.resumed_ns);
            // A connection whose receiver makes the line wait is not measured.
            let on_time = !connection.waited[way] && self.measured[way];
            let outcome = connection.deliver(way, now_ns, allowance, |due_ns| {
                if on_time {
                    lateness.record(monotonic_ns().saturating_sub(due_ns.max(resumed_ns)));
                }
            });
            connection.settle(&mut self.pool);
            match outcome {
                Outcome::Moved(bytes) => {
                    match way {
                        UP => self.statistics.up_bytes += bytes as u64,
                        _ => self.statistics.down_bytes += bytes as u64,
                    }
                    now_ns = monotonic_ns();
                    self.calendar.deliver(bytes, now_ns);
                    if connection.is_over() {
                        return self.remove(id);
                    }
                    self.stand_in_line(id, way);
                }
                Outcome::Later(due_ns) => {
                    connection.waited[way] = false;
                    if !std::mem::replace(&mut connection.armed[way], true) {
                        self.timers.push(Reverse((due_ns, id, Timer::Arrival(way))));
                    }
                    return;
                }
                Outcome::Connect => self.connect(id, now_ns),
                Outcome::Gone => return self.lose(id, target(way), now_ns),
                Outcome::Waiting | Outcome::Ended => {
                    connection.waited[way] = !connection.queues[way].is_empty();
                    let at = target(way);
                    if connection
                        .watch(at, &self.epoll, id * 2 + at as u64)
                        .is_err()
                    {
                        self.lose(id, at, now_ns);
                    }
                    return;
                }
            }
        }
    }

    fn connect(&mut self, id: u64, now_ns: u64) {
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        match connection.connect(&self.server) {
            Ok(()) => {
                let watched = connection.watch(SERVER, &self.epoll, id * 2 + SERVER as u64);
                if watched.is_err() {
                    self.lose(id, SERVER, now_ns);
                }
            }
            Err(Errno::AGAIN) => {
                let again_ns = now_ns + RETRY_NS;
                self.timers.push(Reverse((again_ns, id, Timer::Retry)));
            }
            Err(_) => {
                self.statistics.refused += 1;
                self.lose(id, SERVER, now_ns);
            }
        }
    }

    fn note(&mut self, id: u64, at: At, flags: EventFlags, now_ns: u64) {
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        if !connection.note(at, flags) {
            if at == SERVER && !connection.ends[at].is_connected() {
                self.statistics.refused += 1;
            }
            return self.lose(id, at, now_ns);
        }
        self.stand_in_line(id, at);
        if !self.calendar.is_silent() {
            self.deliver(id, 1 - at, now_ns);
        }
    }

    fn stand_in_line(&mut self, id: u64, way: Way) {
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        if connection.wants_to_read(way)
            && !connection.ends[way].in_line
            && self.pool.room(connection.queues[way].held()) > 0
        {
            connection.ends[way].in_line = true;
            self.turns[way].push_back(id);
        }
    }

    /// An end is closed; the other one gets that after the earlier bytes.
    fn lose(&mut self, id: u64, at: At, now_ns: u64) {
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        connection.reset(at);
        connection.settle(&mut self.pool);
        // A client that leaves before its handshake would be over resets right after it.
        if connection.open && connection.reset_due_ns.is_none() {
            let due_ns = self.lines[at].send(0, now_ns);
            let due_ns = connection.queues[at].in_order(due_ns);
            connection.reset_due_ns = Some(due_ns);
            self.timers.push(Reverse((due_ns, id, Timer::Reset)));
        }
    }

    fn suffer(&mut self, fault: Fault, now_ns: u64) {
        match fault {
            Fault::Silence => self.statistics.cuts += 1,
            Fault::Resume => {
                self.resumed_ns = now_ns;
                // Events during the silence do not repeat, and bytes that waited for the cut itself have no timer.
                let ids: Vec<u64> = self.connections.keys().copied().collect();
                for id in ids {
                    self.deliver(id, UP, now_ns);
                    self.deliver(id, DOWN, now_ns);
                }
            }
            Fault::ResetAll => {
                self.statistics.cuts += 1;
                self.statistics.resets += self.connections.len() as u64;
                let ids: Vec<u64> = self.connections.keys().copied().collect();
                ids.into_iter().for_each(|id| self.remove(id));
            }
        }
    }

    /// Closes both ends: with a reset, unless both have ended their streams.
    fn remove(&mut self, id: u64) {
        let Some(mut connection) = self.connections.remove(&id) else {
            return;
        };
        if !connection.is_over() {
            connection.reset(CLIENT);
            connection.reset(SERVER);
        }
        connection.release(&mut self.pool);
        self.exhausted = false;
    }
}

/// The clock of a timer's descriptor.
fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}
