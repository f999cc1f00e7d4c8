//! The near ends of consecutive connections. The port of an ended one waits out its time, and the kernel gives such a
//! port to `connect` once a second at most; a bound one it gives at once.
//!
//! A bound port is lost to the rest of the machine for a minute, so the drivers share a few ports on many addresses.
//! Connections that are held get their ports by `crate::load::bind_source` instead.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::ops::RangeInclusive;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::sockopt::set_socket_reuseaddr;
use rustix::net::{
    AddressFamily, SocketFlags, SocketType, bind, connect, getpeername, getsockname, socket_with,
};

use crate::network::Network;
use crate::subject::Endpoint;

/// Ports that the drivers of this machine bind, on each address.
const PORTS_MAX: u16 = 1_024;

/// Coprime to the number of ends, so that processes begin at different ones.
const PORTS_APART: usize = 211;

/// Addresses and ports to connect from, each in turn.
pub(crate) struct LocalEnds {
    /// Empty if the server is not on a loopback address: the kernel chooses.
    sources: Vec<Ipv4Addr>,
    ports: RangeInclusive<u16>,
    next: usize,
}

impl LocalEnds {
    /// From `sources`; without any, from the kernel's choice. Processes begin at different ports, so that two of them
    /// rarely try the same one.
    pub(crate) fn new(sources: Vec<Ipv4Addr>) -> Self {
        Self {
            sources,
            ports: reserved(port_range()),
            next: std::process::id() as usize * PORTS_APART,
        }
    }

    /// A socket that is connected.
    ///
    /// It uses the ports in turn, like netperf, and lets the kernel reuse a port whose earlier connection still waits
    /// out its time.
    pub(crate) fn connect(&mut self, server: SocketAddr) -> Result<OwnedFd, Errno> {
        // As many tries as there are ports: each may be in use by another process.
        let mut tries = self.sources.len() * self.ports.len();
        loop {
            let fd = socket_with(
                family(server),
                SocketType::STREAM,
                SocketFlags::CLOEXEC,
                None,
            )?;
            let outcome = match self.take() {
                Some(end) => {
                    set_socket_reuseaddr(&fd, true)?;
                    bind(&fd, &end).and_then(|()| connect(&fd, &server))
                }
                None => connect(&fd, &server),
            };
            match outcome {
                Ok(()) if self.sources.is_empty() && meets_itself(&fd)? => {
                    return Err(Errno::CONNREFUSED);
                }
                Ok(()) => return Ok(fd),
                Err(Errno::ADDRINUSE | Errno::ADDRNOTAVAIL) if tries > 1 => tries -= 1,
                Err(error) => return Err(error),
            }
        }
    }

    fn take(&mut self) -> Option<SocketAddrV4> {
        let count = self.sources.len();
        let source = *self.sources.get(self.next % count.max(1))?;
        let port = self.next / count % self.ports.len();
        self.next = self.next.wrapping_add(1);
        let port = self.ports.start() + u16::try_from(port).unwrap_or(0);
        Some(SocketAddrV4::new(source, port))
    }
}

pub(crate) fn family(address: SocketAddr) -> AddressFamily {
    match address {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    }
}

/// If nothing listens on a port that the kernel assigns to clients, a connection to it can get that very port for its
/// own and answer itself.
pub(crate) fn meets_itself(fd: &OwnedFd) -> Result<bool, Errno> {
    Ok(getpeername(fd)? == Some(getsockname(fd)?))
}

/// Up to so many addresses to connect to `server` from, if this machine has several; none for a remote one, or for no
/// TCP server at all.
pub(crate) fn sources(network: &Network, server: &Endpoint, count: usize) -> Vec<Ipv4Addr> {
    let Endpoint::Tcp(SocketAddr::V4(server)) = server else {
        return Vec::new();
    };
    if server.ip().is_loopback() {
        return loopback_sources(*server.ip(), count);
    }
    let mut sources = network.client_ips();
    sources.retain(|address| !address.is_loopback());
    sources.truncate(count);
    sources
}

/// Never the server's own: a connection from there could meet itself if nothing listens.
fn loopback_sources(server: Ipv4Addr, count: usize) -> Vec<Ipv4Addr> {
    let all = (1..=u8::MAX).map(|last| Ipv4Addr::new(127, 0, 0, last));
    all.filter(|address| *address != server)
        .take(count)
        .collect()
}

/// The number of connections to one server per address.
pub(crate) fn ports_per_address() -> usize {
    port_range().len()
}

/// The last of the kernel's ports, and at most an eighth of them: the others stay free for other programs.
fn reserved(kernels: RangeInclusive<u16>) -> RangeInclusive<u16> {
    let (first, last) = kernels.into_inner();
    let count = ((last - first) / 8 + 1).min(PORTS_MAX);
    last - (count - 1)..=last
}

fn port_range() -> RangeInclusive<u16> {
    let text = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    parse_port_range(&text).unwrap_or(32_768..=60_999)
}

fn parse_port_range(text: &str) -> Option<RangeInclusive<u16>> {
    let mut bounds = text.split_ascii_whitespace().map(str::parse);
    let (low, high) = (bounds.next()?.ok()?, bounds.next()?.ok()?);
    (low <= high).then_some(low..=high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_servers_own_address_is_no_source() {
        #[track_caller]
        fn check(server: u8, expected: &[u8]) {
            let address = |last: &u8| Ipv4Addr::new(127, 0, 0, *last);
            let expected: Vec<_> = expected.iter().map(address).collect();
            assert_eq!(loopback_sources(address(&server), 3), expected);
        }
        check(1, &[2, 3, 4]);
        check(3, &[1, 2, 4]);
        check(200, &[1, 2, 3]);
    }

    #[test]
    fn ends_are_used_in_turn() {
        let mut ends = LocalEnds {
            sources: vec![Ipv4Addr::new(127, 0, 0, 2), Ipv4Addr::new(127, 0, 0, 3)],
            ports: 10..=11,
            next: 0,
        };
        let taken: Vec<String> = (0..5).map(|_| ends.take().unwrap().to_string()).collect();
        let expected = [
            "127.0.0.2:10",
            "127.0.0.3:10",
            "127.0.0.2:11",
            "127.0.0.3:11",
            "127.0.0.2:10",
        ];
        assert_eq!(taken, expected);
        ends.sources.clear();
        assert_eq!(ends.take(), None);
    }

    #[test]
    fn most_ports_stay_free() {
        assert_eq!(reserved(32_768..=60_999), 59_976..=60_999);
        assert_eq!(reserved(40_000..=40_199), 40_175..=40_199);
        assert_eq!(reserved(9..=9), 9..=9);
        assert_eq!(reserved(0..=u16::MAX), 64_512..=u16::MAX);
    }

    #[test]
    fn port_ranges() {
        assert_eq!(parse_port_range("32768\t60999\n"), Some(32_768..=60_999));
        assert_eq!(parse_port_range("9 1"), None);
        assert_eq!(parse_port_range(""), None);
    }
}
