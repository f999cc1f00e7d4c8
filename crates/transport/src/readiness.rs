//! Registering descriptors with the reactor: the only unsafe code of this crate.
#![expect(
    unsafe_code,
    reason = "tokio cannot see that a descriptor outlives its registration"
)]

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::Arc;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::{Connection, Socket};

/// A descriptor that only this registration uses.
pub(crate) fn register_owned(fd: OwnedFd, interest: Interest) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: the registration owns `fd`, and an `OwnedFd` keeps one descriptor open, always the same, until it is
    // dropped, which happens after its registration ended.
    let registered = unsafe { AsyncFd::register_with_interest(fd, interest) };
    Ok(registered?)
}

/// A socket that no connection has yet, for reading.
pub(crate) fn register_socket(socket: Socket) -> io::Result<AsyncFd<Socket>> {
    // SAFETY: the registration owns the socket, whose `OwnedFd` keeps one descriptor open, always the same, until it is
    // dropped or taken out, which happens after its registration ended.
    let registered = unsafe { AsyncFd::register_with_interest(socket, Interest::READABLE) };
    Ok(registered?)
}

/// A connection's descriptor, for reading. For readability only: a stream that is also registered for writability wakes
/// its reader each time the peer takes bytes out, which costs a sequential call over a Unix socket 1.1 µs.
pub(crate) fn register_reader(connection: &Arc<Connection>) -> io::Result<AsyncFd<Reader>> {
    // A mailbox has nothing to register.
    connection.socket()?;
    let reader = Reader(Arc::clone(connection));
    // SAFETY: `Reader` keeps its connection alive, and this one owns one descriptor, which
    // it neither replaces nor closes before it is dropped.
    let registered = unsafe { AsyncFd::register_with_interest(reader, Interest::READABLE) };
    Ok(registered?)
}

/// Keeps a connection, and so its descriptor, for as long as it is registered.
#[derive(Debug)]
pub(crate) struct Reader(Arc<Connection>);

impl AsRawFd for Reader {
    fn as_raw_fd(&self) -> RawFd {
        // Made only for connections with a socket.
        self.0.socket().map_or(-1, AsRawFd::as_raw_fd)
    }
}
