//! The address for a line's clients: a non-blocking listening socket.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use rustix::net::sockopt::{set_socket_reuseaddr, set_tcp_nodelay};
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, getsockname, listen,
    socket_with,
};

use crate::endpoint::Endpoint;

pub(crate) struct Listener {
    socket: OwnedFd,
    /// Of a Unix socket; removed with it.
    path: Option<PathBuf>,
}

/// The kernel's own limit may be lower.
const BACKLOG: i32 = 4096;

impl Listener {
    /// Listens, and returns the address: a TCP port of zero becomes a free one.
    pub(crate) fn bind(endpoint: &Endpoint) -> io::Result<(Self, Endpoint)> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let open = |family| socket_with(family, SocketType::STREAM, flags, None);
        match endpoint {
            Endpoint::Tcp(address) => {
                let socket = open(match address {
                    SocketAddr::V4(_) => AddressFamily::INET,
                    SocketAddr::V6(_) => AddressFamily::INET6,
                })?;
                set_socket_reuseaddr(&socket, true)?;
                bind(&socket, address)?;
                listen(&socket, BACKLOG)?;
                let bound = getsockname(&socket)?;
                let address = SocketAddr::try_from(bound)?;
                Ok((Self { socket, path: None }, Endpoint::Tcp(address)))
            }
            Endpoint::Unix(path) => {
                let socket = open(AddressFamily::UNIX)?;
                clear_abandoned(path)?;
                bind(&socket, &SocketAddrUnix::new(path)?)?;
                let path = Some(path.clone());
                let listener = Self { socket, path };
                listen(&listener.socket, BACKLOG)?;
                Ok((listener, endpoint.clone()))
            }
        }
    }

    pub(crate) fn accept(&self) -> Result<OwnedFd, Errno> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = accept_with(&self.socket, flags)?;
        if self.path.is_none() {
            // A client that has left already is noticed soon enough.
            let _ = set_tcp_nodelay(&socket, true);
        }
        Ok(socket)
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            // Another process may have been faster.
            let _ = fs::remove_file(path);
        }
    }
}

/// Removes the socket of a killed listener; any other file is left, and is in the way.
fn clear_abandoned(path: &Path) -> io::Result<()> {
    let is_socket = fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket());
    if is_socket
        && UnixStream::connect(path)
            .is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
    {
        fs::remove_file(path)?;
    }
    Ok(())
}
