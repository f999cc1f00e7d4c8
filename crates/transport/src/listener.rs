//! Listening sockets, TCP and Unix.

use std::io;
use std::net::{SocketAddr, TcpListener as StdTcpListener};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener as StdUnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::{PeerAddress, Socket, readiness};

/// Where to listen.
#[derive(Clone, Debug)]
pub enum Endpoint {
    Tcp {
        address: SocketAddr,
        options: TcpOptions,
    },
    Unix {
        path: PathBuf,
        backlog: i32,
    },
}

/// Options of a TCP listener and of what it accepts.
#[derive(Clone, Copy, Debug)]
pub struct TcpOptions {
    pub backlog: i32,
    /// Several listeners, of several processes, share the port (`SO_REUSEPORT`).
    pub shared: bool,
    /// How long sent octets may stay unacknowledged before the connection is dead; zero leaves
    /// it to the kernel (`TCP_USER_TIMEOUT`).
    pub user_timeout: Duration,
    pub nodelay: bool,
    /// How long a connection may be silent before the kernel asks whether its peer is still
    /// there; three questions without an answer end it. Zero: never.
    pub keepalive: Duration,
}

impl Default for TcpOptions {
    fn default() -> Self {
        Self {
            backlog: 1024,
            shared: false,
            user_timeout: Duration::from_secs(30),
            nodelay: true,
            keepalive: Duration::from_secs(30),
        }
    }
}

/// A bound and listening socket.
#[derive(Debug)]
pub struct Listener {
    fd: AsyncFd<OwnedFd>,
    endpoint: Endpoint,
}

impl Listener {
    /// Binds and listens. Needs a tokio context, whose thread then waits for connections.
    pub fn bind(endpoint: Endpoint) -> io::Result<Self> {
        let fd = match &endpoint {
            Endpoint::Tcp { address, options } => bind_tcp(*address, options)?,
            Endpoint::Unix { path, backlog } => bind_unix(path, *backlog)?,
        };
        Ok(Self {
            fd: readiness::register_owned(fd, Interest::READABLE)?,
            endpoint,
        })
    }

    /// The address that was bound, with the port that the kernel chose.
    pub fn local_address(&self) -> io::Result<Option<SocketAddr>> {
        match &self.endpoint {
            Endpoint::Tcp { .. } => {
                let listener = StdTcpListener::from(self.fd.get_ref().try_clone()?);
                listener.local_addr().map(Some)
            }
            Endpoint::Unix { .. } => Ok(None),
        }
    }

    /// The next connection.
    pub async fn accept(&self) -> io::Result<Socket> {
        loop {
            let mut guard = self.fd.readable().await?;
            match self.try_accept() {
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => guard.clear_ready(),
                // The peer gave up while it waited; the next one may not have.
                Err(e)
                    if matches!(
                        e.kind(),
                        io::ErrorKind::ConnectionAborted | io::ErrorKind::Interrupted
                    ) => {}
                accepted => return accepted,
            }
        }
    }

    fn try_accept(&self) -> io::Result<Socket> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        match &self.endpoint {
            Endpoint::Tcp { options, .. } => {
                let (fd, address) = rustix::net::acceptfrom_with(&self.fd, flags)?;
                if options.nodelay {
                    sockopt::set_tcp_nodelay(&fd, true)?;
                }
                if !options.user_timeout.is_zero() {
                    let millis =
                        u32::try_from(options.user_timeout.as_millis()).unwrap_or(u32::MAX);
                    sockopt::set_tcp_user_timeout(&fd, millis)?;
                }
                set_keepalive(&fd, options.keepalive)?;
                let peer = address.and_then(|address| SocketAddr::try_from(address).ok());
                let peer = peer.map_or(PeerAddress::Unix(None), PeerAddress::Tcp);
                Ok(Socket::new(fd, peer))
            }
            Endpoint::Unix { .. } => {
                let fd = rustix::net::accept_with(&self.fd, flags)?;
                let credentials = sockopt::socket_peercred(fd.as_fd()).ok();
                let pid = credentials.map(|c| c.pid.as_raw_nonzero().get());
                Ok(Socket::new(fd, PeerAddress::Unix(pid)))
            }
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Endpoint::Unix { path, .. } = &self.endpoint {
            // A stale path would keep the next start from telling a dead socket from a live one.
            let _ = std::fs::remove_file(path);
        }
    }
}

fn set_keepalive(fd: &OwnedFd, keepalive: Duration) -> io::Result<()> {
    if keepalive.is_zero() {
        return Ok(());
    }
    sockopt::set_socket_keepalive(fd, true)?;
    sockopt::set_tcp_keepidle(fd, keepalive)?;
    sockopt::set_tcp_keepintvl(fd, (keepalive / 3).max(Duration::from_secs(1)))?;
    sockopt::set_tcp_keepcnt(fd, 3)?;
    Ok(())
}

fn bind_tcp(address: SocketAddr, options: &TcpOptions) -> io::Result<OwnedFd> {
    let family = if address.is_ipv6() {
        AddressFamily::INET6
    } else {
        AddressFamily::INET
    };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let fd = rustix::net::socket_with(family, SocketType::STREAM, flags, None)?;
    sockopt::set_socket_reuseaddr(&fd, true)?;
    if options.shared {
        sockopt::set_socket_reuseport(&fd, true)?;
    }
    rustix::net::bind(&fd, &address)?;
    rustix::net::listen(&fd, options.backlog)?;
    Ok(fd)
}

fn bind_unix(path: &Path, backlog: i32) -> io::Result<OwnedFd> {
    remove_stale(path)?;
    let listener = StdUnixListener::bind(path)?;
    listener.set_nonblocking(true)?;
    // The standard library chose a backlog of its own.
    rustix::net::listen(&listener, backlog)?;
    Ok(listener.into())
}

/// Removes the socket that a killed process left behind; never one that somebody serves, and
/// never a file of another kind.
fn remove_stale(path: &Path) -> io::Result<()> {
    let Ok(metadata) = std::fs::symlink_metadata(path) else {
        return Ok(());
    };
    if !metadata.file_type().is_socket() {
        return Err(io::Error::new(
            io::ErrorKind::AlreadyExists,
            format!("{} exists and is not a socket", path.display()),
        ));
    }
    match UnixStream::connect(path) {
        Ok(_) => Err(io::Error::new(
            io::ErrorKind::AddrInUse,
            format!("another process serves {}", path.display()),
        )),
        Err(_) => std::fs::remove_file(path),
    }
}
