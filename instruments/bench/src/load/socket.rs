//! Blocking stream sockets of either kind, as bare as the system calls themselves: expensive drivers would hide the
//! subject's cost.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::addr::SocketAddrArg;
use rustix::net::sockopt::{self, Timeout};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, Shutdown, SocketAddrUnix, SocketFlags, SocketType, recv,
    send, shutdown, socket_with,
};

use super::source::bind_source;
use crate::subject::Endpoint;

/// Time limit of a connect: a stopped server, or an address that drops packets, would block it for minutes or forever.
const CONNECT_MAX: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub struct Stream {
    fd: OwnedFd,
    /// The time limit of a read that waits by `poll`.
    polls: Option<Duration>,
}

impl Stream {
    /// Connects; over TCP without Nagle's delay.
    pub fn connect(endpoint: &Endpoint) -> io::Result<Self> {
        match endpoint {
            Endpoint::Unix(path) => {
                let address = SocketAddrUnix::new(path)?;
                Self::new(AddressFamily::UNIX)?.connect_within(&address, CONNECT_MAX)
            }
            Endpoint::Tcp(address) => {
                let family = match address {
                    SocketAddr::V4(_) => AddressFamily::INET,
                    SocketAddr::V6(_) => AddressFamily::INET6,
                };
                let stream = Self::new(family)?;
                sockopt::set_tcp_nodelay(&stream.fd, true)?;
                stream.connect_within(address, CONNECT_MAX)
            }
        }
    }

    /// Connects from a given address: one address has ports for some 28,000 connections.
    pub fn connect_from(source: Ipv4Addr, endpoint: &Endpoint) -> io::Result<Self> {
        let Endpoint::Tcp(address) = endpoint else {
            return Self::connect(endpoint);
        };
        let stream = Self::new(AddressFamily::INET)?;
        bind_source(&stream.fd, source)?;
        sockopt::set_tcp_nodelay(&stream.fd, true)?;
        stream.connect_within(address, CONNECT_MAX)
    }

    fn new(family: AddressFamily) -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC;
        Ok(socket_with(family, SocketType::STREAM, flags, None)?.into())
    }

    /// Connects with a time limit, which the kernel applies as for a write, to either kind of socket.
    fn connect_within(self, address: &impl SocketAddrArg, longest: Duration) -> io::Result<Self> {
        sockopt::set_socket_timeout(&self.fd, Timeout::Send, Some(longest))?;
        match rustix::net::connect(&self.fd, address) {
            Ok(()) => {}
            // The first is TCP's, the second a full backlog's of a Unix socket.
            Err(Errno::INPROGRESS | Errno::AGAIN) => {
                let why = format!("no connection within {} s", longest.as_secs_f64());
                return Err(io::Error::new(io::ErrorKind::TimedOut, why));
            }
            Err(error) => return Err(error.into()),
        }
        sockopt::set_socket_timeout(&self.fd, Timeout::Send, None)?;
        Ok(self)
    }

    /// The same socket once more, for another thread.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(Self {
            fd: self.fd.try_clone()?,
            polls: self.polls,
        })
    }

    /// How long a read or write may wait before it fails; `None` for no limit.
    pub fn limit_waiting(&self, longest: Option<Duration>) -> io::Result<()> {
        sockopt::set_socket_timeout(&self.fd, Timeout::Recv, longest)?;
        Ok(sockopt::set_socket_timeout(
            &self.fd,
            Timeout::Send,
            longest,
        )?)
    }

    /// Makes reads wait by `poll`, as clients with many sockets do, with a time limit.
    ///
    /// A blocking read on a Unix socket is also woken when the peer has read the bytes sent to it, and sleeps again.
    /// The peer pays for that: such wake-ups of clients were a third of a router's time for a session.
    pub fn wait_by_poll(&mut self, longest: Duration) {
        self.polls = Some(longest);
    }

    /// One read; zero at the end of the stream.
    pub fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        if let Some(longest) = self.polls {
            self.await_readable(longest)?;
        }
        self.receive(buffer, RecvFlags::empty())
    }

    /// One read that does not wait.
    pub fn try_read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.receive(buffer, RecvFlags::DONTWAIT)
    }

    fn await_readable(&self, longest: Duration) -> io::Result<()> {
        let longest = Timespec::try_from(longest).map_err(io::Error::other)?;
        loop {
            match poll(&mut [PollFd::new(&self.fd, PollFlags::IN)], Some(&longest)) {
                Ok(0) => return Err(io::ErrorKind::WouldBlock.into()),
                Ok(_) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn receive(&self, buffer: &mut [u8], flags: RecvFlags) -> io::Result<usize> {
        loop {
            match recv(&self.fd, &mut *buffer, flags) {
                Ok((length, _)) => return Ok(length),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    pub fn read_exact(&self, mut buffer: &mut [u8]) -> io::Result<()> {
        while !buffer.is_empty() {
            match self.read(buffer)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                length => buffer = &mut buffer[length..],
            }
        }
        Ok(())
    }

    pub fn write_all(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match send(&self.fd, bytes, SendFlags::NOSIGNAL) {
                Ok(length) => bytes = &bytes[length..],
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// One write that does not wait; returns how many bytes were taken, possibly none.
    pub fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            match send(&self.fd, bytes, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
                Ok(length) => return Ok(length),
                Err(Errno::AGAIN) => return Ok(0),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Ends both directions, also for a thread that is reading.
    pub fn shut_down(&self) {
        // The peer may have closed already.
        let _ = shutdown(&self.fd, Shutdown::Both);
    }
}

impl From<OwnedFd> for Stream {
    fn from(fd: OwnedFd) -> Self {
        Self { fd, polls: None }
    }
}

impl From<Stream> for OwnedFd {
    fn from(stream: Stream) -> Self {
        stream.fd
    }
}

impl std::os::fd::AsFd for Stream {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

#[derive(Debug)]
pub(crate) enum Listener {
    Unix(UnixListener),
    Tcp(TcpListener),
}

impl Listener {
    /// Listens; a TCP port of zero becomes a free one.
    pub(crate) fn bind(endpoint: &Endpoint) -> io::Result<(Self, Endpoint)> {
        match endpoint {
            Endpoint::Unix(path) => {
                if let Err(error) = fs::remove_file(path)
                    && error.kind() != io::ErrorKind::NotFound
                {
                    return Err(error);
                }
                Ok((Self::Unix(UnixListener::bind(path)?), endpoint.clone()))
            }
            Endpoint::Tcp(address) => {
                let listener = TcpListener::bind(address)?;
                let bound = Endpoint::Tcp(listener.local_addr()?);
                Ok((Self::Tcp(listener), bound))
            }
        }
    }

    pub(crate) fn accept(&self) -> io::Result<Stream> {
        match self {
            Self::Unix(listener) => Ok(OwnedFd::from(listener.accept()?.0).into()),
            Self::Tcp(listener) => {
                let (stream, _) = listener.accept()?;
                stream.set_nodelay(true)?;
                Ok(OwnedFd::from(stream).into())
            }
        }
    }
}

/// A TCP address on the loopback with a port that is free now.
pub(crate) fn free_address() -> io::Result<SocketAddr> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use std::net::SocketAddrV4;

    use rustix::net::{bind, listen};

    use super::*;

    #[test]
    fn a_read_that_polls_has_an_end() {
        let (here, there) = UnixStream::pair().unwrap();
        let mut here = Stream::from(OwnedFd::from(here));
        here.wait_by_poll(Duration::from_millis(20));
        let mut buffer = [0; 4];
        let error = here.read(&mut buffer).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock, "{error}");
        let there = Stream::from(OwnedFd::from(there));
        there.write_all(b"abcd").unwrap();
        here.read_exact(&mut buffer).unwrap();
        assert_eq!(&buffer, b"abcd");
        drop(there);
        assert_eq!(here.read(&mut buffer).unwrap(), 0);
    }

    /// Fills a backlog and tries once more.
    #[test]
    fn a_full_backlog_does_not_block_a_connect_forever() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("full.sock");
        let address = SocketAddrUnix::new(&path).unwrap();
        let unix = Stream::new(AddressFamily::UNIX).unwrap();
        bind(&unix.fd, &address).unwrap();
        listen(&unix.fd, 0).unwrap();
        let connect = || {
            Stream::new(AddressFamily::UNIX)?.connect_within(&address, Duration::from_millis(20))
        };
        let mut waiting = Vec::new();
        let error = loop {
            match connect() {
                Ok(stream) => waiting.push(stream),
                Err(error) => break error,
            }
            assert!(waiting.len() < 100, "nothing is ever full");
        };
        assert_eq!(error.kind(), io::ErrorKind::TimedOut, "{error}");

        let tcp = Stream::new(AddressFamily::INET).unwrap();
        bind(&tcp.fd, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0)).unwrap();
        listen(&tcp.fd, 0).unwrap();
        let address = SocketAddr::try_from(rustix::net::getsockname(&tcp.fd).unwrap()).unwrap();
        let connect = || {
            Stream::new(AddressFamily::INET)?.connect_within(&address, Duration::from_millis(20))
        };
        let error = loop {
            match connect() {
                Ok(stream) => waiting.push(stream),
                Err(error) => break error,
            }
            assert!(waiting.len() < 100, "nothing is ever full");
        };
        assert_eq!(error.kind(), io::ErrorKind::TimedOut, "{error}");
    }
}
