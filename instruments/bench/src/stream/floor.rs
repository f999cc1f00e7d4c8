//! The floor: the smallest servers that are correct peers of the tests. One waits with `epoll` for any number of
//! connections, one blocks on one connection after the other; neither does anything but the system calls that the
//! stream needs.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::sockopt::{set_socket_reuseaddr, set_socket_reuseport, set_tcp_nodelay};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, accept_with,
    bind, getsockname, listen, recv, send, socket_with,
};
use serde::{Deserialize, Serialize};

use super::case::Mode;
use super::local::family;
use crate::floor::relay::Waiting;
use crate::process::{Listening, WorkerError, say};
use crate::subject::Endpoint;

pub(crate) const ROLE: &str = "stream-floor";

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct FloorOrder {
    /// A TCP port of zero becomes a free one.
    pub endpoint: Endpoint,
    pub mode: Mode,
    pub waiting: Waiting,
    /// Several processes listen on one port, and the kernel distributes connections.
    pub shared_port: bool,
}

pub(crate) fn work(order: FloorOrder) -> Result<(), WorkerError> {
    let (listener, endpoint) = listening(&order)?;
    say(&Listening { endpoint });
    Ok(serve(listener, &order)?)
}

pub(super) fn serve(listener: OwnedFd, order: &FloorOrder) -> io::Result<()> {
    match order.waiting {
        Waiting::Epoll => Server::new(listener, order.mode)?.serve(),
        Waiting::Blocking => serve_blocking(&listener, order.mode),
    }
}

const BACKLOG: i32 = 4096;

pub(super) fn listening(order: &FloorOrder) -> io::Result<(OwnedFd, Endpoint)> {
    let blocking = match order.waiting {
        Waiting::Epoll => SocketFlags::NONBLOCK,
        Waiting::Blocking => SocketFlags::empty(),
    };
    let open = |family| {
        let flags = SocketFlags::CLOEXEC | blocking;
        socket_with(family, SocketType::STREAM, flags, None)
    };
    match &order.endpoint {
        Endpoint::Unix(path) => {
            let fd = open(AddressFamily::UNIX)?;
            bind(&fd, &SocketAddrUnix::new(path)?)?;
            listen(&fd, BACKLOG)?;
            Ok((fd, order.endpoint.clone()))
        }
        Endpoint::Tcp(address) => {
            let fd = open(family(*address))?;
            set_socket_reuseaddr(&fd, true)?;
            if order.shared_port {
                set_socket_reuseport(&fd, true)?;
            }
            // Accepted ones inherit this, at no cost to them.
            set_tcp_nodelay(&fd, true)?;
            bind(&fd, address)?;
            listen(&fd, BACKLOG)?;
            let bound = getsockname(&fd)?.try_into()?;
            Ok((fd, Endpoint::Tcp(bound)))
        }
    }
}

/// Maximum number of bytes of one read and of one write.
const BUFFER_BYTES: usize = 64 * 1024;

fn serve_blocking(listener: &OwnedFd, mode: Mode) -> io::Result<()> {
    let mut buffer = vec![b'x'; BUFFER_BYTES];
    loop {
        let peer = accept_with(listener, SocketFlags::CLOEXEC)?;
        // The next connection is served after any end of this one.
        let _ = match mode {
            Mode::Echo => echo_blocking(&peer, &mut buffer),
            Mode::Discard => discard_blocking(&peer, &mut buffer),
            Mode::Chargen => chargen_blocking(&peer, &buffer),
        };
    }
}

fn echo_blocking(peer: &OwnedFd, buffer: &mut [u8]) -> Result<(), Errno> {
    loop {
        let (length, _) = recv(peer, &mut *buffer, RecvFlags::empty())?;
        let mut left = &buffer[..length];
        if left.is_empty() {
            return Ok(());
        }
        while !left.is_empty() {
            left = &left[send(peer, left, SendFlags::NOSIGNAL)?..];
        }
    }
}

fn discard_blocking(peer: &OwnedFd, buffer: &mut [u8]) -> Result<(), Errno> {
    while recv(peer, &mut *buffer, RecvFlags::empty())?.0 > 0 {}
    Ok(())
}

fn chargen_blocking(peer: &OwnedFd, buffer: &[u8]) -> Result<(), Errno> {
    loop {
        send(peer, buffer, SendFlags::NOSIGNAL)?;
    }
}

/// One thread, level-triggered: the minimum of system calls of a server with many connections.
struct Server {
    epoll: OwnedFd,
    listener: OwnedFd,
    mode: Mode,
    /// By descriptor.
    connections: Vec<Option<Connection>>,
    buffer: Vec<u8>,
}

struct Connection {
    fd: OwnedFd,
    /// Bytes of one read that the writes have not taken. The next read waits until none are left, so this is bounded.
    left: Vec<u8>,
}

impl Server {
    fn new(listener: OwnedFd, mode: Mode) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let data = EventData::new_u64(listener.as_raw_fd() as u64);
        epoll::add(&epoll, &listener, data, EventFlags::IN)?;
        Ok(Self {
            epoll,
            listener,
            mode,
            connections: Vec::new(),
            buffer: vec![b'x'; BUFFER_BYTES],
        })
    }

    fn serve(mut self) -> io::Result<()> {
        let listening = self.listener.as_raw_fd() as u64;
        let mut events = Vec::with_capacity(256);
        loop {
            events.clear();
            match epoll::wait(&self.epoll, spare_capacity(&mut events), None) {
                Ok(_) => {}
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            }
            for event in &events {
                match event.data.u64() {
                    data if data == listening => self.accept()?,
                    data => self.advance(usize::try_from(data).unwrap_or(usize::MAX)),
                }
            }
        }
    }

    /// One per event: further waiting ones cause another event.
    fn accept(&mut self) -> io::Result<()> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let fd = match accept_with(&self.listener, flags) {
            Ok(fd) => fd,
            Err(Errno::AGAIN | Errno::CONNABORTED | Errno::INTR) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        let at = usize::try_from(fd.as_raw_fd()).unwrap_or(0);
        if self.connections.len() <= at {
            self.connections.resize_with(at + 1, || None);
        }
        let interest = match self.mode {
            Mode::Chargen => EventFlags::OUT,
            Mode::Echo | Mode::Discard => EventFlags::IN,
        };
        epoll::add(&self.epoll, &fd, EventData::new_u64(at as u64), interest)?;
        let left = Vec::new();
        self.connections[at] = Some(Connection { fd, left });
        Ok(())
    }

    fn advance(&mut self, at: usize) {
        let Some(Some(connection)) = self.connections.get_mut(at) else {
            return;
        };
        let goes_on = match self.mode {
            Mode::Echo => connection.echo(&self.epoll, at, &mut self.buffer),
            Mode::Discard => match recv(&connection.fd, &mut self.buffer[..], RecvFlags::empty()) {
                Ok((length, _)) => Ok(length > 0),
                Err(error) => Err(error),
            },
            Mode::Chargen => try_send(&connection.fd, &self.buffer).map(|_| true),
        };
        if !matches!(goes_on, Ok(true) | Err(Errno::AGAIN)) {
            self.connections[at] = None;
        }
    }
}

impl Connection {
    /// False at the end of the stream.
    fn echo(&mut self, epoll: &OwnedFd, at: usize, buffer: &mut [u8]) -> Result<bool, Errno> {
        if !self.left.is_empty() {
            let taken = try_send(&self.fd, &self.left)?;
            self.left.drain(..taken);
            if self.left.is_empty() {
                self.wait_for(epoll, at, EventFlags::IN)?;
            }
            return Ok(true);
        }
        let (length, _) = recv(&self.fd, &mut *buffer, RecvFlags::empty())?;
        let taken = try_send(&self.fd, &buffer[..length])?;
        if taken < length {
            self.left.extend_from_slice(&buffer[taken..length]);
            self.wait_for(epoll, at, EventFlags::OUT)?;
        }
        Ok(length > 0)
    }

    fn wait_for(&self, epoll: &OwnedFd, at: usize, events: EventFlags) -> Result<(), Errno> {
        epoll::modify(
            epoll,
            self.fd.as_fd(),
            EventData::new_u64(at as u64),
            events,
        )
    }
}

fn try_send(peer: &OwnedFd, bytes: &[u8]) -> Result<usize, Errno> {
    if bytes.is_empty() {
        return Ok(0);
    }
    match send(peer, bytes, SendFlags::NOSIGNAL) {
        Err(Errno::AGAIN) => Ok(0),
        outcome => outcome,
    }
}
