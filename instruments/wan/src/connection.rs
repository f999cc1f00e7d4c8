//! One connection through a delay line: two sockets and the bytes in transit.
//!
//! ```text
//!            ends[CLIENT] ──read──▶ queues[UP] ──write──▶ ends[SERVER]
//!            ends[CLIENT] ◀─write── queues[DOWN] ◀─read── ends[SERVER]
//! ```
//!
//! A kernel accepts for its listener, so a client's connect always returns at once. From there on everything has the
//! times of a long line: for one round trip the client is not read, as if its handshake were still in progress. Then
//! its SYN travels up as a mark in the queue, and its bytes behind it.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::sockopt::{set_socket_linger, set_tcp_nodelay, socket_error};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, Shutdown, SocketAddrUnix, SocketFlags, SocketType,
    connect, recv, send, shutdown, socket_with,
};

use crate::endpoint::Endpoint;
use crate::line::Pool;
use crate::queue::{Mark, Next, Queue};

/// A direction, and an index: the bytes of `UP` come from `CLIENT`.
pub(crate) type Way = usize;
pub(crate) const UP: Way = 0;
pub(crate) const DOWN: Way = 1;

/// An end, and an index: its bytes travel in the direction of the same number.
pub(crate) type At = usize;
pub(crate) const CLIENT: At = 0;
pub(crate) const SERVER: At = 1;

/// The end that a direction leads to.
pub(crate) const fn target(way: Way) -> At {
    1 - way
}

pub(crate) struct Connection {
    pub(crate) ends: [End; 2],
    pub(crate) queues: [Queue; 2],
    /// Whether the client's handshake would be over.
    pub(crate) open: bool,
    /// When the reset of one end reaches the other.
    pub(crate) reset_due_ns: Option<u64>,
    /// Whether there is a timer for the next arrival in each direction.
    pub(crate) armed: [bool; 2],
    /// Whether arrived bytes of each direction had to wait for their receiver.
    pub(crate) waited: [bool; 2],
    /// The queues' sizes, as far as the pool knows.
    held: [usize; 2],
}

#[derive(Default)]
pub(crate) struct End {
    socket: Option<OwnedFd>,
    /// Connected, as far as this kernel is concerned.
    connected: bool,
    /// There may be something to read.
    pub(crate) readable: bool,
    /// The last event reported that this end has closed its side, so a short read is not the last.
    hung_up: bool,
    /// Its stream has been read to its end, or it is closed.
    read_ended: bool,
    /// It currently takes no more.
    full: bool,
    watched: bool,
    /// `epoll` reports when it does again.
    watched_for_room: bool,
    /// Its stream was shut down.
    write_ended: bool,
    /// It waits in line to be read.
    pub(crate) in_line: bool,
}

/// The result of an attempt to read or to deliver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// This many bytes; more may follow at once.
    Moved(usize),
    /// The stream has ended.
    Ended,
    /// The SYN has arrived: connect to the server.
    Connect,
    /// The next bytes arrive at this time.
    Later(u64),
    /// An event must come first.
    Waiting,
    /// The end that was tried is closed.
    Gone,
}

impl Connection {
    /// Of a client that was accepted.
    pub(crate) fn new(socket: OwnedFd) -> Self {
        let client = End {
            socket: Some(socket),
            connected: true,
            ..End::default()
        };
        Self {
            ends: [client, End::default()],
            queues: Default::default(),
            open: false,
            reset_due_ns: None,
            armed: [false; 2],
            waited: [false; 2],
            held: [0; 2],
        }
    }

    /// Whether there is something to read in this direction, and an open receiver.
    pub(crate) fn wants_to_read(&self, way: Way) -> bool {
        let source = &self.ends[way];
        source.readable && source.connected && !source.read_ended && self.open && !self.is_broken()
    }

    /// One of the two is closed; the other will be notified.
    pub(crate) fn is_broken(&self) -> bool {
        self.reset_due_ns.is_some()
    }

    /// Both directions have ended and everything has arrived.
    pub(crate) fn is_over(&self) -> bool {
        self.ends.iter().all(|end| end.write_ended)
    }

    /// Reads once into `buffer`.
    pub(crate) fn read(&mut self, way: Way, buffer: &mut [u8]) -> Outcome {
        let end = &mut self.ends[way];
        let Some(socket) = &end.socket else {
            return Outcome::Gone;
        };
        let asked = buffer.len();
        match recv(socket, buffer, RecvFlags::DONTWAIT) {
            Ok((0, _)) => {
                end.readable = false;
                end.read_ended = true;
                Outcome::Ended
            }
            Ok((length, _)) => {
                // A short read has emptied the socket, which then reports new bytes.
                end.readable = length == asked || end.hung_up;
                Outcome::Moved(length)
            }
            Err(Errno::AGAIN) => {
                end.readable = false;
                Outcome::Waiting
            }
            Err(Errno::INTR) => Outcome::Waiting,
            Err(_) => Outcome::Gone,
        }
    }

    /// Delivers at most one write's worth of arrived bytes in a direction. `arrived` gets the due time of each read
    /// that it completes.
    pub(crate) fn deliver(
        &mut self,
        way: Way,
        now_ns: u64,
        bytes_max: usize,
        arrived: impl FnMut(u64),
    ) -> Outcome {
        let end = &mut self.ends[target(way)];
        let queue = &mut self.queues[way];
        let bytes = match queue.next(now_ns, bytes_max) {
            Next::Nothing => return Outcome::Waiting,
            Next::Later(due_ns) => return Outcome::Later(due_ns),
            Next::Mark(Mark::Connect) => {
                queue.take_mark();
                return Outcome::Connect;
            }
            _ if !end.connected || end.full => return Outcome::Waiting,
            Next::Mark(Mark::End) => {
                queue.take_mark();
                end.write_ended = true;
                let ended = end.socket.as_ref().map(|it| shutdown(it, Shutdown::Write));
                return match ended {
                    Some(Ok(())) => Outcome::Moved(0),
                    _ => Outcome::Gone,
                };
            }
            Next::Bytes([]) => return Outcome::Waiting,
            Next::Bytes(bytes) => bytes,
        };
        let Some(socket) = &end.socket else {
            return Outcome::Gone;
        };
        match send(socket, bytes, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
            Ok(length) => {
                queue.take(length, arrived);
                Outcome::Moved(length)
            }
            Err(Errno::AGAIN) => {
                end.full = true;
                Outcome::Waiting
            }
            Err(Errno::INTR) => Outcome::Moved(0),
            Err(_) => Outcome::Gone,
        }
    }

    /// Begins to connect to the server; `AGAIN` if it must be retried later.
    pub(crate) fn connect(&mut self, server: &Endpoint) -> Result<(), Errno> {
        let end = &mut self.ends[SERVER];
        let (socket, outcome) = match server {
            Endpoint::Tcp(address) => {
                let family = match address {
                    SocketAddr::V4(_) => AddressFamily::INET,
                    SocketAddr::V6(_) => AddressFamily::INET6,
                };
                let socket = stream_socket(family)?;
                set_tcp_nodelay(&socket, true)?;
                let outcome = connect(&socket, address);
                (socket, outcome)
            }
            Endpoint::Unix(path) => {
                let socket = stream_socket(AddressFamily::UNIX)?;
                let outcome = connect(&socket, &SocketAddrUnix::new(path)?);
                (socket, outcome)
            }
        };
        match outcome {
            Ok(()) => end.connected = true,
            Err(Errno::INPROGRESS) => {}
            Err(error) => return Err(error),
        }
        // Until it is connected, and if that takes time, writing waits for the event.
        end.full = !end.connected;
        end.socket = Some(socket);
        Ok(())
    }

    /// Records an event of an end; false if the end is closed.
    pub(crate) fn note(&mut self, at: At, flags: EventFlags) -> bool {
        let end = &mut self.ends[at];
        let Some(socket) = &end.socket else {
            return true;
        };
        if flags.contains(EventFlags::ERR) && !matches!(socket_error(socket), Ok(Ok(()))) {
            return false;
        }
        if flags.contains(EventFlags::OUT) {
            end.connected = true;
            end.full = false;
        }
        if flags.intersects(EventFlags::HUP | EventFlags::RDHUP) {
            end.hung_up = true;
            // A write finds out whether it is completely closed.
            end.full = false;
        }
        if flags.intersects(EventFlags::IN | EventFlags::HUP | EventFlags::RDHUP) {
            end.readable = true;
        }
        true
    }

    /// Registers an end with `epoll` under `data`: for input, and for room if it was full.
    pub(crate) fn watch(&mut self, at: At, epoll: &OwnedFd, data: u64) -> Result<(), Errno> {
        let end = &mut self.ends[at];
        let Some(socket) = &end.socket else {
            return Ok(());
        };
        let data = EventData::new_u64(data);
        // Room is registered only when it is needed: a Unix socket would report each read of its peer.
        let flags = EventFlags::IN | EventFlags::RDHUP | EventFlags::ET;
        match (end.watched, end.full && !end.watched_for_room) {
            (false, for_room) => {
                (end.watched, end.watched_for_room) = (true, for_room);
                let room = [EventFlags::empty(), EventFlags::OUT][usize::from(for_room)];
                epoll::add(epoll, socket, data, flags | room)
            }
            (true, true) => {
                end.watched_for_room = true;
                epoll::modify(epoll, socket, data, flags | EventFlags::OUT)
            }
            (true, false) => Ok(()),
        }
    }

    /// Reports the queues' sizes to the pool.
    pub(crate) fn settle(&mut self, pool: &mut Pool) {
        for (queue, held) in self.queues.iter().zip(&mut self.held) {
            let before = std::mem::replace(held, queue.held());
            pool.change(before, *held);
        }
    }

    /// Returns the queues' sizes to the pool.
    pub(crate) fn release(mut self, pool: &mut Pool) {
        self.queues.iter_mut().for_each(Queue::clear);
        self.settle(pool);
    }

    /// Closes an end visibly: with a reset, if its kind of socket has one.
    pub(crate) fn reset(&mut self, at: At) {
        let end = &mut self.ends[at];
        if let Some(socket) = end.socket.take() {
            // On a Unix socket this has no effect, and closing has to do.
            let _ = set_socket_linger(&socket, Some(Duration::ZERO));
        }
        end.read_ended = true;
        end.write_ended = true;
        self.queues[1 - at].clear();
    }
}

impl End {
    /// Closed, not merely unconnected yet.
    pub(crate) fn is_gone(&self) -> bool {
        self.socket.is_none() && self.write_ended
    }

    pub(crate) fn is_connected(&self) -> bool {
        self.connected
    }
}

fn stream_socket(family: AddressFamily) -> rustix::io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    socket_with(family, SocketType::STREAM, flags, None)
}
