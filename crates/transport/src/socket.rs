//! One connected stream socket, TCP or Unix, non-blocking.

use std::fmt;
use std::io::{self, IoSlice};
use std::net::{SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, Shutdown, sockopt};

/// A connected socket. Every call is a raw system call that never blocks.
#[derive(Debug)]
pub struct Socket {
    fd: OwnedFd,
    peer: Peer,
}

/// The address in 16 bytes; each connection has one.
#[derive(Clone, Debug)]
enum Peer {
    V4(SocketAddrV4),
    V6(Box<SocketAddrV6>),
    Unix(i32),
    Unnamed,
}

/// The other end's address, for logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerAddress {
    Tcp(SocketAddr),
    /// The process id of the client, if the kernel provides it.
    Unix(Option<i32>),
}

/// Linux's buffer for what a Unix socket sends.
const USUAL_BUFFER_BYTES: usize = 212_992;
/// Linux doubles it, and takes no more than `net.core.wmem_max` before, by default its usual size.
const WIDE_BUFFER_BYTES: usize = 512 * 1024;

impl Socket {
    /// Takes a connected, non-blocking descriptor.
    pub fn new(fd: OwnedFd, peer: PeerAddress) -> Self {
        let peer = peer.into();
        Self { fd, peer }
    }

    /// The other end's address.
    pub fn peer(&self) -> PeerAddress {
        match &self.peer {
            Peer::V4(address) => PeerAddress::Tcp((*address).into()),
            Peer::V6(address) => PeerAddress::Tcp((**address).into()),
            Peer::Unix(pid) => PeerAddress::Unix(Some(*pid)),
            Peer::Unnamed => PeerAddress::Unix(None),
        }
    }

    /// The same socket, for a client at `peer` behind a proxy.
    pub fn with_peer(self, peer: PeerAddress) -> Self {
        Self::new(self.fd, peer)
    }

    /// This end's address, if it is TCP.
    pub(crate) fn own_address(&self) -> Option<SocketAddr> {
        SocketAddr::try_from(rustix::net::getsockname(&self.fd).ok()?).ok()
    }

    /// Receives into `buffer`; zero is the end of the stream.
    pub fn recv(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let (received, _) = rustix::net::recv(&self.fd, buffer, RecvFlags::empty())?;
        Ok(received)
    }

    /// Copies received bytes into `buffer`, and leaves them to be received; zero is the end of the stream.
    pub(crate) fn peek(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let (received, _) = rustix::net::recv(&self.fd, buffer, RecvFlags::PEEK)?;
        Ok(received)
    }

    /// Receives into the spare capacity of `buffer`; zero is the end of the stream.
    pub fn recv_append(&self, buffer: &mut Vec<u8>) -> io::Result<usize> {
        let spare = rustix::buffer::spare_capacity(buffer);
        let (received, _) = rustix::net::recv(&self.fd, spare, RecvFlags::empty())?;
        Ok(received)
    }

    /// Lets a Unix socket with the system's usual buffer hold more. Large messages are then sent in fewer parts, and wake
    /// their receiver less often. TCP's buffers grow by themselves.
    pub(crate) fn widen(&self) {
        let (Peer::Unix(_) | Peer::Unnamed) = self.peer else {
            return;
        };
        if sockopt::socket_send_buffer_size(&self.fd) == Ok(USUAL_BUFFER_BYTES) {
            // A socket that stays as it is serves as well.
            let _ = sockopt::set_socket_send_buffer_size(&self.fd, WIDE_BUFFER_BYTES);
        }
    }

    /// Sends as much of `bytes` as the socket takes.
    pub fn send(&self, bytes: &[u8]) -> io::Result<usize> {
        Ok(rustix::net::send(&self.fd, bytes, SendFlags::NOSIGNAL)?)
    }

    /// Sends as much of `slices` as the socket takes, in one system call.
    pub fn send_slices(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        let mut no_control = SendAncillaryBuffer::default();
        Ok(rustix::net::sendmsg(
            &self.fd,
            slices,
            &mut no_control,
            SendFlags::NOSIGNAL,
        )?)
    }

    /// Ends both directions; a reader of this socket, on any thread, sees the end.
    pub fn shut_down(&self) {
        // The peer may have been faster; then there is nothing left to end.
        let _ = rustix::net::shutdown(&self.fd, Shutdown::Both);
    }

    /// Whether the peer has closed its side.
    pub(crate) fn is_closed_by_peer(&self) -> bool {
        let mut polled = [PollFd::new(&self.fd, PollFlags::RDHUP)];
        let now = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        matches!(poll(&mut polled, Some(&now)), Ok(1))
    }

    /// Signals the end to the peer, while its own bytes are still received.
    pub fn shut_down_write(&self) {
        let _ = rustix::net::shutdown(&self.fd, Shutdown::Write);
    }

    /// A second descriptor of the same socket, to be registered for other readiness.
    pub(crate) fn duplicate(&self) -> io::Result<OwnedFd> {
        self.fd.try_clone()
    }
}

impl From<PeerAddress> for Peer {
    fn from(peer: PeerAddress) -> Self {
        match peer {
            PeerAddress::Tcp(SocketAddr::V4(address)) => Self::V4(address),
            PeerAddress::Tcp(SocketAddr::V6(address)) => Self::V6(Box::new(address)),
            PeerAddress::Unix(Some(pid)) => Self::Unix(pid),
            PeerAddress::Unix(None) => Self::Unnamed,
        }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl AsRawFd for Socket {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

impl fmt::Display for PeerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => write!(f, "tcp:{address}"),
            Self::Unix(Some(pid)) => write!(f, "unix:pid={pid}"),
            Self::Unix(None) => f.write_str("unix"),
        }
    }
}
