//! The loop that opens and closes connections: one thread, one epoll, and the minimum of system calls for each
//! connection, so that the driver itself is not measured.
//!
//! ```text
//! launch: socket, connect, send request ─┐            in flight until here
//!     ┌──────────────────────────────────┘                    │
//!     ▼             recv 101, check                           ▼
//!  Opening ──────────────────────────────▶ send close ──▶ Closing ──▶ recv close ──▶ Ending ──▶ close
//! ```
//!
//! The server closes TCP first, as RFC 6455 section 7.1.1 requires.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

use super::closing::close_frame;
use super::dial::{Dial, NoConnection};
use super::log::Connection;
use super::opened::{Opened, Phase, Taken};
use super::opening::{Openings, Target};

#[derive(Clone, Debug)]
pub(super) struct Load {
    pub(super) connections: u64,
    /// Launch nothing after this time.
    pub(super) seconds_max: Option<f64>,
    /// More are launched when fewer handshakes than this are in flight…
    pub(super) low: usize,
    /// High mark: …until this many are in flight.
    pub(super) high: usize,
    /// Maximum number of open connections, including those that are closing.
    pub(super) open_max: usize,
    /// How long a server may take for one step of a connection.
    pub(super) patience: Duration,
}

#[derive(Debug)]
pub(super) struct Findings {
    pub(super) connections: Vec<Connection>,
    pub(super) throttled: u64,
    pub(super) resumed: u64,
    pub(super) failures: BTreeMap<String, u64>,
    /// Completed handshakes whose TCP connection the server left to us to close.
    pub(super) left_open: u64,
    /// The reason why launching stopped early.
    pub(super) gave_up: Option<String>,
    pub(super) begun: Instant,
    /// The end of the last connection or of its last frame: the wait for a server that leaves closing TCP to us is not
    /// part of a rate.
    pub(super) ended: Instant,
}

/// The interval of sweeps for connections that wait too long.
const SWEEP: Duration = Duration::from_millis(50);

/// How long a server may take to close TCP after the last frame: then we close it.
const ENDING: Duration = Duration::from_millis(100);

/// Maximum number of distinct failures; a server with random answers has no more.
const FAILURE_KINDS_MAX: usize = 20;

/// The state of a connection after an event.
enum Step {
    Waits,
    Ended,
    /// All frames were exchanged, and the server does not close the connection.
    LeftOpen,
    Failed(String),
}

/// Runs the load. `done` counts ended connections for a progress display.
pub(super) fn drive(target: &Target, load: &Load, done: &AtomicU64) -> Result<Findings, Errno> {
    Driver::new(target, load)?.run(done)
}

struct Driver<'a> {
    load: &'a Load,
    dial: Dial,
    openings: Openings,
    epoll: OwnedFd,
    buffer: Vec<u8>,
    /// Open connections; an event carries its connection's index.
    slots: Vec<Option<Opened>>,
    free: Vec<usize>,
    open: usize,
    in_flight: usize,
    launched: u64,
    /// Between the low and the high mark, on the way up.
    filling: bool,
    failed_in_a_row: usize,
    findings: Findings,
}

impl<'a> Driver<'a> {
    fn new(target: &Target, load: &'a Load) -> Result<Self, Errno> {
        let now = Instant::now();
        Ok(Self {
            load,
            dial: Dial::new(target.address),
            openings: Openings::new(target),
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            buffer: vec![0; 16 * 1024],
            slots: Vec::new(),
            free: Vec::new(),
            open: 0,
            in_flight: 0,
            launched: 0,
            filling: false,
            failed_in_a_row: 0,
            findings: Findings {
                // Room for the likely number; the vector grows if needed.
                connections: Vec::with_capacity(load.connections.min(1 << 20) as usize),
                throttled: 0,
                resumed: 0,
                failures: BTreeMap::new(),
                left_open: 0,
                gave_up: None,
                begun: now,
                ended: now,
            },
        })
    }

    fn run(mut self, done: &AtomicU64) -> Result<Findings, Errno> {
        let mut events = Vec::with_capacity(256);
        let mut swept = self.findings.begun;
        let wait = Timespec {
            tv_sec: 0,
            tv_nsec: SWEEP.as_nanos() as i64,
        };
        loop {
            self.launch_more();
            if self.open == 0 && !self.may_launch() {
                break;
            }
            let before = self.findings.connections.len();
            match epoll::wait(&self.epoll, spare_capacity(&mut events), Some(&wait)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
            for event in events.drain(..) {
                self.advance(event.data.u64() as usize, event.flags);
            }
            let now = Instant::now();
            if now.duration_since(swept) >= SWEEP {
                swept = now;
                self.sweep(now);
            }
            let ended = self.findings.connections.len() - before;
            if ended > 0 {
                done.fetch_add(ended as u64, Ordering::Relaxed);
            }
        }
        Ok(self.findings)
    }

    fn may_launch(&self) -> bool {
        let in_time = || match self.load.seconds_max {
            Some(seconds) => self.findings.begun.elapsed().as_secs_f64() < seconds,
            None => true,
        };
        self.launched < self.load.connections && self.findings.gave_up.is_none() && in_time()
    }

    /// wsperf's rule: nothing between the marks, then everything up to the high one.
    fn launch_more(&mut self) {
        if !self.filling {
            if self.in_flight >= self.load.low.max(1) || !self.may_launch() {
                return;
            }
            self.filling = true;
            self.findings.resumed += 1;
        }
        while self.may_launch() && self.open < self.load.open_max {
            if self.in_flight >= self.load.high {
                self.findings.throttled += 1;
                self.filling = false;
                return;
            }
            if !self.launch() {
                return;
            }
        }
    }

    /// False if the next one has to wait until others have ended.
    fn launch(&mut self) -> bool {
        let since = Instant::now();
        let fd = match self.dial.begin() {
            Ok(fd) => fd,
            Err(NoConnection::Descriptors | NoConnection::Ports) if self.open > 0 => return false,
            Err(NoConnection::Descriptors) => {
                return self.give_up("no descriptor is left; raise `ulimit -n`, or lower HIGH");
            }
            Err(NoConnection::Ports) => {
                return self.give_up(
                    "no port is left to come from: the server leaves closing TCP to its client; \
                     fewer connections, or wait a minute between two runs",
                );
            }
            Err(NoConnection::Itself) => {
                return self.give_up("nothing listens there any more");
            }
            Err(NoConnection::Failed(error)) => {
                self.launched += 1;
                let times = Connection {
                    failed: true,
                    ..Connection::default()
                };
                self.count_failure(times, error.to_string());
                return true;
            }
        };
        let slot = self.free.pop().unwrap_or(self.slots.len());
        let mut opened = Opened {
            fd,
            phase: Phase::Connecting,
            number: self.launched as usize,
            since,
            input: Vec::new(),
            times: Connection::default(),
        };
        self.launched += 1;
        self.in_flight += 1;
        self.open += 1;
        // On the loopback a connection is established before connect returns, and sending at once saves a wait.
        let step = self.send_request(&mut opened);
        let mut interest = epoll::EventFlags::IN | epoll::EventFlags::RDHUP;
        if opened.phase == Phase::Connecting {
            interest |= epoll::EventFlags::OUT;
        }
        let data = epoll::EventData::new_u64(slot as u64);
        let added = epoll::add(
            &self.epoll,
            &opened.fd,
            data,
            interest | epoll::EventFlags::ET,
        );
        let step = match added {
            Err(error) => Step::Failed(format!("epoll: {error}")),
            Ok(()) => step,
        };
        if slot == self.slots.len() {
            self.slots.push(None);
        }
        self.settle(slot, opened, step);
        true
    }

    fn give_up(&mut self, why: &str) -> bool {
        self.findings.gave_up = Some(why.to_owned());
        false
    }

    fn send_request(&self, opened: &mut Opened) -> Step {
        let request = self.openings.request(opened.number);
        match send(&opened.fd, request, SendFlags::NOSIGNAL) {
            Ok(length) if length == request.len() => {
                let now = Instant::now();
                opened.times.tcp_pre_init = microseconds(now, opened.since);
                opened.phase = Phase::Opening;
                opened.since = now;
                Step::Waits
            }
            Ok(_) => Step::Failed("the socket took half a request".to_owned()),
            Err(Errno::AGAIN | Errno::NOTCONN | Errno::INTR) => Step::Waits,
            Err(error) => Step::Failed(error.to_string()),
        }
    }

    fn advance(&mut self, slot: usize, flags: epoll::EventFlags) {
        let Some(mut opened) = self.slots.get_mut(slot).and_then(Option::take) else {
            return;
        };
        let hung_up = flags
            .intersects(epoll::EventFlags::RDHUP | epoll::EventFlags::HUP | epoll::EventFlags::ERR);
        let step = match opened.phase {
            Phase::Connecting => match self.send_request(&mut opened) {
                // Nothing is read yet: received bytes are a new event.
                Step::Waits if hung_up => Step::Failed(socket_error(&opened.fd)),
                step => step,
            },
            Phase::Ending if hung_up => Step::Ended,
            Phase::Ending => Step::Waits,
            Phase::Opening | Phase::Closing => self.receive(&mut opened, hung_up),
        };
        self.settle(slot, opened, step);
    }

    /// Reads the available bytes, and handles everything that follows.
    fn receive(&mut self, opened: &mut Opened, hung_up: bool) -> Step {
        loop {
            let length = match recv(&opened.fd, &mut self.buffer[..], RecvFlags::empty()) {
                Ok((0, _)) => return Step::Failed(opened.phase.when_closed().to_owned()),
                Ok((length, _)) => length,
                Err(Errno::AGAIN) => return Step::Waits,
                Err(Errno::INTR) => continue,
                Err(error) => return Step::Failed(error.to_string()),
            };
            let mut earlier = std::mem::take(&mut opened.input);
            let bytes = if earlier.is_empty() {
                &self.buffer[..length]
            } else {
                earlier.extend_from_slice(&self.buffer[..length]);
                &earlier
            };
            let step = match opened.take_in(&mut self.openings, bytes) {
                Taken::Opened => self.close_opened(opened),
                Taken::Closed if hung_up => Step::Ended,
                Taken::Closed => {
                    opened.times.close = microseconds(Instant::now(), opened.since);
                    Step::Waits
                }
                Taken::Partly => Step::Waits,
                Taken::Wrong(why) => Step::Failed(why),
            };
            // A read that did not fill the buffer has emptied the socket; later bytes, the end of the stream included,
            // are a new event. An end that was there already is not.
            let drained = length < self.buffer.len() && !hung_up;
            if !matches!(step, Step::Waits) || drained || opened.phase == Phase::Ending {
                return step;
            }
        }
    }

    fn close_opened(&mut self, opened: &mut Opened) -> Step {
        let now = Instant::now();
        opened.times.open = microseconds(now, opened.since);
        opened.since = now;
        self.in_flight -= 1;
        self.failed_in_a_row = 0;
        match send(&opened.fd, &close_frame(), SendFlags::NOSIGNAL) {
            Ok(_) => Step::Waits,
            Err(error) => Step::Failed(error.to_string()),
        }
    }

    /// Puts a connection back, or counts how it ended.
    fn settle(&mut self, slot: usize, mut opened: Opened, step: Step) {
        match step {
            Step::Waits => {
                self.slots[slot] = Some(opened);
                return;
            }
            Step::Ended => {
                // Closed before the clock is read: it is the last part of the measured time.
                drop(opened.fd);
                let now = Instant::now();
                opened.times.close = microseconds(now, opened.since);
                self.findings.ended = now;
                self.findings.connections.push(opened.times);
            }
            Step::LeftOpen => {
                let said = Duration::from_micros(opened.times.close.unsigned_abs());
                self.findings.ended = self.findings.ended.max(opened.since + said);
                self.findings.left_open += 1;
                self.findings.connections.push(opened.times);
            }
            Step::Failed(why) => {
                drop(opened.fd);
                let now = Instant::now();
                let elapsed = microseconds(now, opened.since);
                self.findings.ended = now;
                opened.times.failed = true;
                match opened.phase {
                    Phase::Connecting => opened.times.tcp_pre_init = elapsed,
                    Phase::Opening => opened.times.open = elapsed,
                    Phase::Closing | Phase::Ending => opened.times.close = elapsed,
                }
                if matches!(opened.phase, Phase::Connecting | Phase::Opening) {
                    self.in_flight -= 1;
                }
                self.count_failure(opened.times, why);
            }
        }
        self.free.push(slot);
        self.open -= 1;
    }

    fn count_failure(&mut self, times: Connection, why: String) {
        self.findings.connections.push(times);
        self.failed_in_a_row += 1;
        // One wave of handshakes without a single success: the server is gone.
        if self.failed_in_a_row >= self.load.high.max(10) && self.findings.gave_up.is_none() {
            self.findings.gave_up = Some(format!(
                "{} connections in a row failed, the last one: {why}",
                self.failed_in_a_row
            ));
        }
        let kinds = self.findings.failures.len();
        match self.findings.failures.get_mut(&why) {
            Some(count) => *count += 1,
            None if kinds < FAILURE_KINDS_MAX => {
                self.findings.failures.insert(why, 1);
            }
            None => {
                let others = self.findings.failures.entry("something else".to_owned());
                *others.or_insert(0) += 1;
            }
        }
    }

    fn sweep(&mut self, now: Instant) {
        for slot in 0..self.slots.len() {
            let Some(opened) = &self.slots[slot] else {
                continue;
            };
            let waited = now.saturating_duration_since(opened.since);
            let said = Duration::from_micros(opened.times.close.unsigned_abs());
            let patience = match opened.phase {
                Phase::Ending => said + self.load.patience.min(ENDING),
                _ => self.load.patience,
            };
            let step = match opened.phase {
                _ if waited < patience => continue,
                // All frames were exchanged; only the end is missing.
                Phase::Ending => Step::LeftOpen,
                phase => Step::Failed(format!(
                    "{} within {} s",
                    phase.when_silent(),
                    self.load.patience.as_secs_f64()
                )),
            };
            if let Some(opened) = self.slots[slot].take() {
                self.settle(slot, opened, step);
            }
        }
    }
}

fn microseconds(now: Instant, since: Instant) -> i64 {
    now.saturating_duration_since(since).as_micros() as i64
}

fn socket_error(fd: &OwnedFd) -> String {
    match rustix::net::sockopt::socket_error(fd) {
        Ok(Err(error)) | Err(error) => error.to_string(),
        Ok(Ok(())) => Phase::Connecting.when_closed().to_owned(),
    }
}
