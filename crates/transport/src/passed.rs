//! Listening sockets that pass from one process of a node to its successor, and their ownership.
//!
//! A socket is passed as a descriptor, and is never closed and bound again: its queued connections wait. The successor
//! [keeps](keep) what it receives until its listeners [take](take) it, by address. The former process keeps second
//! descriptors in the same way until the successor serves, so that it can go back.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use rustix::net::SocketAddrUnix;

use crate::listener::path_of;

/// A listening socket on its way.
#[derive(Debug)]
pub struct Passed {
    /// The listener's name in its node: `worker1/tcp`.
    pub name: String,
    pub fd: OwnedFd,
}

/// The address that a listener is to have.
#[derive(Clone, Copy, Debug)]
pub enum Wanted<'a> {
    Tcp {
        interface: IpAddr,
        /// 0 leaves the port to the system.
        port: u16,
        /// The last port of a range.
        last: Option<u16>,
    },
    Unix(&'a Path),
}

static KEPT: Mutex<Vec<Passed>> = Mutex::new(Vec::new());

/// Whether the files of this node belong to this process.
static OWNS_FILES: AtomicBool = AtomicBool::new(true);

/// Keeps these sockets for the listeners that start next.
pub fn keep(sockets: impl IntoIterator<Item = Passed>) {
    KEPT.lock().extend(sockets);
}

/// Closes the descriptors that no listener has taken, and returns their names.
pub fn release() -> Vec<String> {
    let left = std::mem::take(&mut *KEPT.lock());
    left.into_iter().map(|passed| passed.name).collect()
}

/// The socket of the listener with that name, or else one of that address, if it is kept.
pub(crate) fn take(name: &str, wanted: Wanted<'_>) -> Option<OwnedFd> {
    let mut kept = KEPT.lock();
    let fits = |passed: &Passed| address_of(&passed.fd).is_ok_and(|at| wanted.is_met_by(&at));
    let of_name = kept.iter().position(|own| own.name == name && fits(own));
    // A port that the system chose is that of its own listener alone.
    let is_fixed = wanted.is_fixed();
    let at = of_name.or_else(|| kept.iter().position(|own| is_fixed && fits(own)))?;
    Some(kept.remove(at).fd)
}

/// The port of the kept socket with that name.
pub fn port(name: &str) -> Option<u16> {
    let kept = KEPT.lock();
    let own = kept.iter().find(|passed| passed.name == name)?;
    match address_of(&own.fd).ok()? {
        Address::Tcp(address) => Some(address.port()),
        Address::Unix(_) => None,
    }
}

/// Says whether this process removes the files of the node's sockets, and its process id file, at its end. At each time
/// one process of a node does.
pub fn own_files(owns: bool) {
    OWNS_FILES.store(owns, Ordering::Relaxed);
}

pub fn owns_files() -> bool {
    OWNS_FILES.load(Ordering::Relaxed)
}

#[derive(Debug, PartialEq, Eq)]
enum Address {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

fn address_of(fd: &impl AsFd) -> io::Result<Address> {
    let address = rustix::net::getsockname(fd)?;
    if let Ok(address) = SocketAddr::try_from(address.clone()) {
        return Ok(Address::Tcp(address));
    }
    let address = SocketAddrUnix::try_from(address)?;
    let path = path_of(&address).ok_or(io::ErrorKind::AddrNotAvailable)?;
    Ok(Address::Unix(path))
}

impl Wanted<'_> {
    fn is_met_by(&self, address: &Address) -> bool {
        match (self, address) {
            (
                Self::Tcp {
                    interface,
                    port,
                    last,
                },
                Address::Tcp(address),
            ) => {
                let ports = *port..=last.unwrap_or(*port);
                address.ip() == *interface && (*port == 0 || ports.contains(&address.port()))
            }
            (Self::Unix(path), Address::Unix(at)) => *path == at,
            _ => false,
        }
    }

    /// Whether one address alone meets it.
    fn is_fixed(&self) -> bool {
        match self {
            Self::Tcp { port, last, .. } => *port != 0 && last.is_none(),
            Self::Unix(_) => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
    const ANY: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

    #[test]
    fn an_address_is_met_by_itself_by_a_range_and_by_a_chosen_port() {
        let at = Address::Tcp(SocketAddr::new(HERE, 8080));
        for (interface, port, last, is_met, is_fixed) in [
            (HERE, 8080, None, true, true),
            (HERE, 8081, None, false, true),
            (ANY, 8080, None, false, true),
            (HERE, 0, None, true, false),
            (ANY, 0, None, false, false),
            (HERE, 8000, Some(8080), true, false),
            (HERE, 8000, Some(8079), false, false),
        ] {
            let wanted = Wanted::Tcp {
                interface,
                port,
                last,
            };
            assert_eq!(wanted.is_met_by(&at), is_met, "{wanted:?}");
            assert_eq!(wanted.is_fixed(), is_fixed, "{wanted:?}");
        }
        let path = Path::new("/run/a.sock");
        assert!(!Wanted::Unix(path).is_met_by(&at));
        assert!(Wanted::Unix(path).is_met_by(&Address::Unix(path.to_owned())));
        assert!(!Wanted::Unix(path).is_met_by(&Address::Unix("/run/b.sock".into())));
    }

    #[test]
    fn a_listener_takes_its_own_socket_before_another_of_its_address() {
        let listen = || {
            let fd = OwnedFd::from(std::net::TcpListener::bind((HERE, 0)).expect("binds"));
            let Ok(Address::Tcp(address)) = address_of(&fd) else {
                panic!("no address");
            };
            (fd, address.port())
        };
        let (first, first_port) = listen();
        let (second, second_port) = listen();
        let passed = |name: &str, fd| Passed {
            name: name.to_owned(),
            fd,
        };
        keep([passed("w/one", first), passed("w/two", second)]);
        let wanted = |port| Wanted::Tcp {
            interface: HERE,
            port,
            last: None,
        };
        assert_eq!(port("w/two"), Some(second_port));
        assert_eq!(port("w/three"), None);
        // A chosen port is that of its own listener.
        assert!(take("w/three", wanted(0)).is_none());
        let own = take("w/two", wanted(0)).expect("its own");
        let at = Address::Tcp(SocketAddr::new(HERE, second_port));
        assert_eq!(address_of(&own).ok(), Some(at));
        // A renamed listener of the same address.
        assert!(take("w/three", wanted(second_port)).is_none());
        assert!(take("w/three", wanted(first_port)).is_some());
        assert!(release().is_empty());
    }
}
