//! A process that opens connections on command, and holds them. It waits for all of them with one `epoll`, so that a
//! slow one delays no other.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::sockopt::socket_error;
use rustix::net::{
    RecvFlags, SendFlags, SocketFlags, SocketType, connect, recv, send, socket_with,
};
use serde::{Deserialize, Serialize};

use crate::load::{Latencies, Recorded, Stream, bind_source, monotonic_ns, reset_when_closed};
use crate::process::{WorkerError, descriptors, instruction, say};
use crate::stream::local::{family, meets_itself};
use crate::subject::Endpoint;

pub(crate) const ROLE: &str = "accept-client";

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ClientOrder {
    pub endpoint: Endpoint,
    /// The source address of its connections; `None` leaves it to the kernel.
    pub source: Option<Ipv4Addr>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Instruction {
    /// Start so many more connections, and report [`ClientReport::Created`].
    Open { count: usize },
    /// Wait until no connection is in progress, and report [`ClientReport::Settled`].
    Settle,
    /// Send one byte on every connection, wait for all echoes, and report [`ClientReport::Echoed`].
    Echo,
    /// Report [`ClientReport::Held`].
    Count,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum ClientReport {
    Ready,
    Created,
    Settled(Settled),
    Echoed(Echoed),
    /// The number of connections that are still open.
    Held {
        open: usize,
    },
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Settled {
    pub established: usize,
    pub failed: usize,
    /// When the last of them was established or failed, on the machine's monotonic clock.
    pub last_ns: u64,
    pub latencies: Recorded,
    /// The reason of the first failure.
    pub failure: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Echoed {
    pub right: usize,
    pub wrong: usize,
    /// Connections without an answer, or closed by the server.
    pub missing: usize,
}

/// The longest time without any event before pending operations count as failed.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

/// Checks that the server listens: many connections are a slow way to find that out.
pub(super) fn probe(endpoint: &Endpoint, sources: &[Ipv4Addr]) -> Result<(), String> {
    let outcome = match sources.first() {
        Some(source) => Stream::connect_from(*source, endpoint),
        None => Stream::connect(endpoint),
    };
    let outcome = outcome.and_then(|stream| Ok(reset_when_closed(&stream)?));
    outcome.map_err(|error| match error.kind() {
        io::ErrorKind::ConnectionRefused => format!("{error}; nothing listens there"),
        _ => error.to_string(),
    })
}

/// A client's main function; it ends with its standard input.
pub(crate) fn work(order: ClientOrder) -> Result<(), WorkerError> {
    descriptors::raise();
    let mut client = Client::new(order)?;
    say(&ClientReport::Ready);
    loop {
        // Instructions arrive one at a time, so none is ever left in the reader's buffer.
        client.wait(WaitingFor::Instruction)?;
        if !std::mem::take(&mut client.instructed) {
            continue;
        }
        let Some(instruction) = instruction()? else {
            return Ok(());
        };
        match instruction {
            Instruction::Open { count } => {
                client.open(count)?;
                say(&ClientReport::Created);
            }
            Instruction::Settle => {
                let settled = client.settle()?;
                say(&ClientReport::Settled(settled));
            }
            Instruction::Echo => {
                let echoed = client.echo()?;
                say(&ClientReport::Echoed(echoed));
            }
            Instruction::Count => {
                client.wait(WaitingFor::Nothing)?;
                say(&ClientReport::Held {
                    open: client.open_connections(),
                });
            }
        }
    }
}

struct Client {
    order: ClientOrder,
    epoll: OwnedFd,
    connections: Vec<Connection>,
    connecting: usize,
    echoing: usize,
    settled: Settled,
    latencies: Latencies,
    echoed: Echoed,
    /// Standard input is readable.
    instructed: bool,
}

enum Connection {
    Connecting(OwnedFd, Instant),
    Open(OwnedFd),
    /// Its byte is in flight.
    Echoing(OwnedFd),
    Gone,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum WaitingFor {
    /// Only events that have occurred already.
    Nothing,
    Instruction,
    /// Any event on a connection.
    Connections,
}

const STANDARD_INPUT: u64 = u64::MAX;

/// After this many connects the client checks which have completed, so that its own work on a batch is not in their
/// latencies.
const CONNECTS_AT_ONCE: usize = 8;

impl Client {
    fn new(order: ClientOrder) -> Result<Self, WorkerError> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(io::Error::from)?;
        let data = EventData::new_u64(STANDARD_INPUT);
        epoll::add(&epoll, io::stdin(), data, EventFlags::IN).map_err(io::Error::from)?;
        Ok(Self {
            order,
            epoll,
            connections: Vec::new(),
            connecting: 0,
            echoing: 0,
            settled: Settled::default(),
            latencies: Latencies::default(),
            echoed: Echoed::default(),
            instructed: false,
        })
    }

    fn open(&mut self, count: usize) -> Result<(), WorkerError> {
        for at in 0..count {
            let begun = Instant::now();
            match self.connect() {
                Ok(fd) => self.watch(fd, begun)?,
                // A server that accepts nothing for so long will not accept the rest either.
                Err(Errno::TIMEDOUT) => {
                    (at..count).for_each(|_| self.count_failure(Errno::TIMEDOUT));
                    return Ok(());
                }
                Err(error) => self.count_failure(error),
            }
            if at % CONNECTS_AT_ONCE == 0 {
                self.wait(WaitingFor::Nothing)?;
            }
        }
        Ok(())
    }

    fn connect(&self) -> Result<OwnedFd, Errno> {
        match &self.order.endpoint {
            Endpoint::Tcp(server) => connect_tcp(*server, self.order.source),
            // If the server's backlog is full this waits for room, with a time limit.
            unix @ Endpoint::Unix(_) => {
                Stream::connect(unix)
                    .map(OwnedFd::from)
                    .map_err(|error| match error.kind() {
                        io::ErrorKind::TimedOut => Errno::TIMEDOUT,
                        _ => Errno::from_io_error(&error).unwrap_or(Errno::IO),
                    })
            }
        }
    }

    fn watch(&mut self, fd: OwnedFd, begun: Instant) -> Result<(), WorkerError> {
        let data = EventData::new_u64(self.connections.len() as u64);
        // Edge-triggered: the events "connected" and "readable" in one registration.
        let events = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        epoll::add(&self.epoll, &fd, data, events).map_err(io::Error::from)?;
        self.connections.push(Connection::Connecting(fd, begun));
        self.connecting += 1;
        Ok(())
    }

    fn settle(&mut self) -> Result<Settled, WorkerError> {
        let mut deadline = Instant::now() + PATIENCE;
        while self.connecting > 0 && Instant::now() < deadline {
            if self.wait(WaitingFor::Connections)? {
                deadline = Instant::now() + PATIENCE;
            }
        }
        for connection in &mut self.connections {
            if matches!(connection, Connection::Connecting(..)) {
                *connection = Connection::Gone;
            }
        }
        if self.connecting > 0 {
            self.settled.failed += std::mem::take(&mut self.connecting);
            self.settled.last_ns = monotonic_ns();
            self.settled.failure.get_or_insert_with(|| {
                format!("the server did not answer for {} s", PATIENCE.as_secs())
            });
        }
        self.settled.latencies = self.latencies.recorded();
        Ok(self.settled.clone())
    }

    fn echo(&mut self) -> Result<Echoed, WorkerError> {
        for at in 0..self.connections.len() {
            let connection = std::mem::replace(&mut self.connections[at], Connection::Gone);
            self.connections[at] = match connection {
                Connection::Open(fd) => match send(&fd, &[byte(at)], SendFlags::NOSIGNAL) {
                    Ok(_) => {
                        self.echoing += 1;
                        Connection::Echoing(fd)
                    }
                    Err(_) => Connection::Gone,
                },
                other => other,
            };
            if at % 64 == 0 {
                self.wait(WaitingFor::Nothing)?;
            }
        }
        let mut deadline = Instant::now() + PATIENCE;
        while self.echoing > 0 && Instant::now() < deadline {
            if self.wait(WaitingFor::Connections)? {
                deadline = Instant::now() + PATIENCE;
            }
        }
        let answered = self.echoed.right + self.echoed.wrong;
        self.echoed.missing = self.settled.established.saturating_sub(answered);
        Ok(self.echoed)
    }

    fn open_connections(&self) -> usize {
        let open = |c: &&Connection| matches!(c, Connection::Open(_) | Connection::Echoing(_));
        self.connections.iter().filter(open).count()
    }

    /// Handles events of connections; returns whether there were any.
    fn wait(&mut self, waiting: WaitingFor) -> Result<bool, WorkerError> {
        let mut events = Vec::with_capacity(1024);
        let mut moved = false;
        let longest = match waiting {
            WaitingFor::Nothing => Some(Duration::ZERO),
            WaitingFor::Instruction => None,
            WaitingFor::Connections => Some(Duration::from_millis(500)),
        };
        loop {
            events.clear();
            let longest = longest.and_then(|longest| Timespec::try_from(longest).ok());
            match epoll::wait(&self.epoll, spare_capacity(&mut events), longest.as_ref()) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(io::Error::from(error).into()),
            }
            for event in &events {
                if event.data.u64() == STANDARD_INPUT {
                    self.instructed = true;
                } else {
                    moved = true;
                    self.advance(usize::try_from(event.data.u64()).unwrap_or(usize::MAX));
                }
            }
            // More events may be pending than one call returns.
            if events.len() < events.capacity() || self.instructed {
                return Ok(moved);
            }
        }
    }

    fn advance(&mut self, at: usize) {
        let Some(slot) = self.connections.get_mut(at) else {
            return;
        };
        match std::mem::replace(slot, Connection::Gone) {
            Connection::Connecting(fd, begun) => {
                self.connecting -= 1;
                match socket_error(&fd) {
                    Ok(Ok(())) => {
                        *slot = Connection::Open(fd);
                        self.latencies.record(begun.elapsed().as_nanos() as u64);
                        self.settled.established += 1;
                        self.settled.last_ns = monotonic_ns();
                    }
                    Ok(Err(error)) | Err(error) => self.count_failure(error),
                }
            }
            Connection::Open(fd) => {
                let mut unasked = [0; 64];
                match recv(&fd, &mut unasked, RecvFlags::DONTWAIT) {
                    Err(Errno::AGAIN) => *slot = Connection::Open(fd),
                    // Unexpected bytes are not an echo, and the echo will be counted as missing.
                    Ok((length, _)) if length > 0 => {
                        self.echoed.wrong += 1;
                    }
                    _ => {}
                }
            }
            Connection::Echoing(fd) => {
                let mut came = [0; 2];
                match recv(&fd, &mut came, RecvFlags::DONTWAIT) {
                    Err(Errno::AGAIN) => {
                        *slot = Connection::Echoing(fd);
                        return;
                    }
                    Ok((1, _)) if came[0] == byte(at) => {
                        self.echoed.right += 1;
                        *slot = Connection::Open(fd);
                    }
                    Ok((1.., _)) => self.echoed.wrong += 1,
                    Ok((0, _)) | Err(_) => {}
                }
                self.echoing -= 1;
            }
            Connection::Gone => {}
        }
    }

    fn count_failure(&mut self, error: Errno) {
        self.settled.failed += 1;
        self.settled.last_ns = monotonic_ns();
        self.settled
            .failure
            .get_or_insert_with(|| io::Error::from(error).to_string());
    }
}

/// Starts a connection that will end with a reset: tens of thousands in TIME_WAIT would hinder later connections.
fn connect_tcp(server: SocketAddr, source: Option<Ipv4Addr>) -> Result<OwnedFd, Errno> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let fd = socket_with(family(server), SocketType::STREAM, flags, None)?;
    reset_when_closed(&fd)?;
    if let Some(source) = source {
        bind_source(&fd, source)?;
    }
    match connect(&fd, &server) {
        Ok(()) if source.is_none() && meets_itself(&fd)? => Err(Errno::CONNREFUSED),
        Ok(()) | Err(Errno::INPROGRESS) => Ok(fd),
        Err(error) => Err(error),
    }
}

/// Different for each connection, as far as there are bytes.
fn byte(at: usize) -> u8 {
    (at % 251) as u8
}
