//! Listening sockets, TCP and Unix.

use std::ffi::OsStr;
use std::fmt;
use std::fs::Permissions;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use parking_lot::Mutex;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, sockopt};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::handed::{self, Lent};
use crate::passed::{self, Wanted};
use crate::{PeerAddress, Socket, readiness};

/// The address to listen on.
#[derive(Clone, Debug)]
pub enum Endpoint {
    Tcp {
        address: SocketAddr,
        options: TcpOptions,
    },
    Unix {
        path: PathBuf,
        backlog: i32,
        /// The permissions of the socket's file; `None` leaves them to the process's umask.
        mode: Option<u32>,
    },
}

/// Options of a TCP listener and of its accepted sockets.
#[derive(Clone, Copy, Debug)]
pub struct TcpOptions {
    pub backlog: i32,
    /// Several listeners, of several processes, share the port (`SO_REUSEPORT`).
    pub shared: bool,
    /// How long sent bytes may stay unacknowledged before the connection is dead; zero leaves it to the kernel
    /// (`TCP_USER_TIMEOUT`).
    pub user_timeout: Duration,
    pub nodelay: bool,
    /// How long a connection may be silent before the kernel probes its peer; three unanswered probes end it. Zero:
    /// never.
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
    bound: Bound,
    /// A descriptor to release if no others are left.
    spare: Mutex<Option<OwnedFd>>,
    /// Set for a socket of the service manager.
    lent: Option<Lent>,
}

#[derive(Debug)]
enum Bound {
    Tcp,
    /// With the path to remove at the end, unless another process owns it.
    Unix {
        file: Option<(PathBuf, FileId)>,
    },
}

/// Distinguishes the file from another one at the same path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileId {
    device: u64,
    inode: u64,
}

impl Listener {
    /// Binds and listens. Needs a tokio context, whose thread then waits for connections.
    pub fn bind(endpoint: Endpoint) -> io::Result<Self> {
        let (fd, bound) = match endpoint {
            Endpoint::Tcp { address, options } => {
                let fd = bind_tcp(address, &options).map_err(|e| at(&address, &e))?;
                (fd, Bound::Tcp)
            }
            Endpoint::Unix {
                path,
                backlog,
                mode,
            } => {
                let fd = bind_unix(&path, backlog, mode).map_err(|e| at(&path.display(), &e))?;
                let file = FileId::of(&path)?;
                let file = Some((path, file));
                (fd, Bound::Unix { file })
            }
        };
        Ok(Self {
            fd: readiness::register_owned(fd, Interest::READABLE)?,
            bound,
            spare: Mutex::new(spare()),
            lent: None,
        })
    }

    /// Adopts a listening socket, such as one of [`bind_group`] that another process bound. Needs a tokio context,
    /// whose thread then waits for connections. The path of a Unix socket stays owned by the process that bound it.
    pub fn adopt(fd: OwnedFd) -> io::Result<Self> {
        let bound = match sockopt::socket_domain(&fd)? {
            AddressFamily::UNIX => Bound::Unix { file: None },
            _ => Bound::Tcp,
        };
        Ok(Self {
            fd: readiness::register_owned(fd, Interest::READABLE)?,
            bound,
            spare: Mutex::new(spare()),
            lent: None,
        })
    }

    /// Adopts the socket that another process of the node has passed on, if there is one with that name or address, and
    /// sets its options. Needs a tokio context, like [`Listener::adopt`].
    pub fn adopt_passed(
        name: &str,
        wanted: Wanted<'_>,
        options: &TcpOptions,
    ) -> io::Result<Option<Self>> {
        let Some(fd) = passed::take(name, wanted) else {
            return Ok(None);
        };
        let mut adopted = Self::adopt(fd)?;
        if let Bound::Unix { file } = &mut adopted.bound
            && let Wanted::Unix(path) = wanted
        {
            *file = FileId::of(path).ok().map(|own| (path.to_owned(), own));
        }
        adopted.adjust(options)?;
        Ok(Some(adopted))
    }

    /// Adopts the socket that the service manager passed by this name. Sets the options that accepted sockets inherit,
    /// and no others: the backlog is the manager's. Needs a tokio context, like [`Listener::adopt`].
    pub fn adopt_handed(name: &str, options: &TcpOptions) -> io::Result<Self> {
        let (fd, lent) = handed::lend(name)?;
        let adopted = prepare_handed(&fd, options).and_then(|()| Self::adopt(fd));
        let failed = |e: io::Error| io::Error::new(e.kind(), format!("socket '{name}': {e}"));
        let mut adopted = adopted.map_err(failed)?;
        adopted.lent = Some(lent);
        Ok(adopted)
    }

    /// A second descriptor of the socket, for another process to [adopt](Self::adopt).
    pub fn duplicate(&self) -> io::Result<OwnedFd> {
        self.fd.get_ref().try_clone()
    }

    /// The bound address, with the port that the kernel chose; `None` for a Unix socket.
    pub fn local_address(&self) -> io::Result<Option<SocketAddr>> {
        let address = rustix::net::getsockname(&self.fd)?;
        Ok(SocketAddr::try_from(address).ok())
    }

    /// The bound path; `None` unless it is a Unix socket with one.
    pub fn local_path(&self) -> io::Result<Option<PathBuf>> {
        let address = rustix::net::getsockname(&self.fd)?;
        let address = SocketAddrUnix::try_from(address).ok();
        Ok(address.as_ref().and_then(path_of))
    }

    /// Sets the options of connections that are accepted later, and the backlog, unless that is the service manager's.
    /// Whether the port is shared stays.
    pub fn adjust(&self, options: &TcpOptions) -> io::Result<()> {
        if matches!(self.bound, Bound::Tcp) {
            set_options(self.fd.get_ref(), options)?;
        }
        if self.lent.is_none() {
            rustix::net::listen(&self.fd, options.backlog)?;
        }
        Ok(())
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

    /// Accepts one connection on the spare descriptor and closes it; returns whether it did. If no descriptors are
    /// left, the peer sees an immediate end instead of waiting for an answer.
    pub fn turn_away(&self) -> bool {
        let mut kept = self.spare.lock();
        drop(kept.take());
        let was_there = self.try_accept().is_ok();
        *kept = spare();
        was_there
    }

    fn try_accept(&self) -> io::Result<Socket> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        match &self.bound {
            Bound::Tcp => {
                let (fd, address) = rustix::net::acceptfrom_with(&self.fd, flags)?;
                let peer = address.and_then(|address| SocketAddr::try_from(address).ok());
                let peer = peer.map_or(PeerAddress::Unix(None), PeerAddress::Tcp);
                Ok(Socket::new(fd, peer))
            }
            Bound::Unix { .. } => {
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
        // A stale path would keep the next start from distinguishing a dead socket from a live one. A path that another
        // process has replaced since is not removed.
        if let Bound::Unix {
            file: Some((path, file)),
        } = &self.bound
            && FileId::of(path).is_ok_and(|now| now == *file)
            && passed::owns_files()
        {
            let _ = std::fs::remove_file(path);
        }
    }
}

impl FileId {
    fn of(path: &Path) -> io::Result<Self> {
        let metadata = std::fs::symlink_metadata(path)?;
        Ok(Self {
            device: metadata.dev(),
            inode: metadata.ino(),
        })
    }
}

/// The path in a Unix socket's address.
pub(crate) fn path_of(address: &SocketAddrUnix) -> Option<PathBuf> {
    let path = address.path_bytes()?;
    Some(PathBuf::from(OsStr::from_bytes(path)))
}

/// A spare descriptor; if none is available now, it is opened when it is needed.
fn spare() -> Option<OwnedFd> {
    rustix::fs::open("/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()
}

/// Adds the address to an error.
fn at(place: &dyn fmt::Display, e: &io::Error) -> io::Error {
    io::Error::new(e.kind(), format!("{place}: {e}"))
}

/// Sockets of one TCP port among which the kernel distributes the connections, one for each of `count` processes to
/// [adopt](Listener::adopt); they listen already. A port with another listener is an error, even if that one would
/// share it; port 0 picks a free one.
pub fn bind_group(
    address: SocketAddr,
    options: &TcpOptions,
    count: usize,
) -> io::Result<(SocketAddr, Vec<OwnedFd>)> {
    let bind = || {
        // Bound alone it proves that the port is free, and reserves the port while the group is bound. It never
        // listens, or it would get connections.
        let keeper = socket(address)?;
        rustix::net::bind(&keeper, &address)?;
        sockopt::set_socket_reuseport(&keeper, true)?;
        let bound = rustix::net::getsockname(&keeper)?;
        let bound = SocketAddr::try_from(bound)?;
        let options = TcpOptions {
            shared: true,
            ..*options
        };
        let group = (0..count).map(|_| bind_tcp(bound, &options));
        Ok((bound, group.collect::<io::Result<_>>()?))
    };
    bind().map_err(|e| at(&address, &e))
}

fn socket(address: SocketAddr) -> io::Result<OwnedFd> {
    let family = if address.is_ipv6() {
        AddressFamily::INET6
    } else {
        AddressFamily::INET
    };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let fd = rustix::net::socket_with(family, SocketType::STREAM, flags, None)?;
    sockopt::set_socket_reuseaddr(&fd, true)?;
    Ok(fd)
}

fn bind_tcp(address: SocketAddr, options: &TcpOptions) -> io::Result<OwnedFd> {
    let fd = socket(address)?;
    if options.shared {
        sockopt::set_socket_reuseport(&fd, true)?;
    }
    set_options(&fd, options)?;
    rustix::net::bind(&fd, &address)?;
    rustix::net::listen(&fd, options.backlog)?;
    Ok(fd)
}

/// Checks a socket that another program opened, and sets its options.
fn prepare_handed(fd: &OwnedFd, options: &TcpOptions) -> io::Result<()> {
    let refused = |text: &str| Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    if sockopt::socket_type(fd)? != SocketType::STREAM || !sockopt::socket_acceptconn(fd)? {
        return refused("expected one that listens for streams (ListenStream=, with Accept=no)");
    }
    match sockopt::socket_domain(fd)? {
        AddressFamily::INET | AddressFamily::INET6 => set_options(fd, options)?,
        AddressFamily::UNIX => {}
        _ => return refused("expected one of TCP, or a Unix socket"),
    }
    Ok(rustix::io::ioctl_fionbio(fd, true)?)
}

/// Sets the options that accepted sockets inherit: once here, instead of several calls for each socket.
fn set_options(fd: &OwnedFd, options: &TcpOptions) -> io::Result<()> {
    sockopt::set_tcp_nodelay(fd, options.nodelay)?;
    let timeout_ms = i32::try_from(options.user_timeout.as_millis()).unwrap_or(i32::MAX);
    sockopt::set_tcp_user_timeout(fd, timeout_ms.unsigned_abs())?;
    if !options.keepalive.is_zero() {
        let idle = options.keepalive.clamp(KEEPALIVE_MIN, KEEPALIVE_MAX);
        sockopt::set_socket_keepalive(fd, true)?;
        sockopt::set_tcp_keepidle(fd, idle)?;
        sockopt::set_tcp_keepintvl(fd, (idle / 3).max(KEEPALIVE_MIN))?;
        sockopt::set_tcp_keepcnt(fd, 3)?;
    }
    Ok(())
}

/// The kernel's minimum.
const KEEPALIVE_MIN: Duration = Duration::from_secs(1);
const KEEPALIVE_MAX: Duration = Duration::from_secs(32_767);

fn bind_unix(path: &Path, backlog: i32, mode: Option<u32>) -> io::Result<OwnedFd> {
    let address = unix_address(path)?;
    remove_stale(path, &address)?;
    let fd = unix_socket()?;
    rustix::net::bind(&fd, &address)?;
    let listen = || {
        // Clients cannot connect before the socket listens.
        if let Some(mode) = mode {
            std::fs::set_permissions(path, Permissions::from_mode(mode))?;
        }
        Ok(rustix::net::listen(&fd, backlog)?)
    };
    if let Err(e) = listen() {
        let _ = std::fs::remove_file(path);
        return Err(e);
    }
    Ok(fd)
}

fn unix_socket() -> io::Result<OwnedFd> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    Ok(rustix::net::socket_with(
        AddressFamily::UNIX,
        SocketType::STREAM,
        flags,
        None,
    )?)
}

/// The kernel accepts one more byte, but most clients do not: they end the path with a zero byte.
const PATH_BYTES_MAX: usize = 107;

fn unix_address(path: &Path) -> io::Result<SocketAddrUnix> {
    let bytes = path.as_os_str().len();
    if bytes > PATH_BYTES_MAX {
        let text =
            format!("the path of a Unix socket may have {PATH_BYTES_MAX} bytes, not {bytes}");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    Ok(SocketAddrUnix::new(path)?)
}

/// Removes the socket of a killed process; never one that is being served, and never a file of another kind.
fn remove_stale(path: &Path, address: &SocketAddrUnix) -> io::Result<()> {
    let Ok(metadata) = std::fs::symlink_metadata(path) else {
        return Ok(());
    };
    if !metadata.file_type().is_socket() {
        let what = "exists and is not a socket";
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, what));
    }
    // Non-blocking: a process that is too busy to accept serves the path nevertheless.
    let probe = unix_socket()?;
    match rustix::net::connect(&probe, address) {
        Err(Errno::CONNREFUSED) => std::fs::remove_file(path),
        Ok(()) | Err(Errno::AGAIN | Errno::PROTOTYPE) => {
            let what = "another process serves this socket";
            Err(io::Error::new(io::ErrorKind::AddrInUse, what))
        }
        Err(e) => Err(e.into()),
    }
}
