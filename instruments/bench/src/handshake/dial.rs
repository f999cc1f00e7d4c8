//! Non-blocking connects, from as many addresses as needed.
//!
//! One source address has some 28,000 ports for one server. A WebSocket server closes TCP first, so the wait after a
//! close (TIME_WAIT) is its own, and a client's port is free at once. A server that leaves closing to the client makes
//! the ports run out. On the loopback there are other source addresses.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, getsockname, socket_with};

use crate::load::bind_source;

/// The source of one driver's connections.
#[derive(Debug)]
pub(super) struct Dial {
    server: SocketAddr,
    /// The last byte of the source address; zero: the kernel's choice.
    source: u8,
    /// Whether the server's port is among those that the kernel assigns to clients.
    may_meet_itself: bool,
}

/// 127.0.0.2 to this one.
const SOURCE_MAX: u8 = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoConnection {
    /// The process or the system has no descriptor left.
    Descriptors,
    /// No port is free on any source address.
    Ports,
    /// Nothing listens, and the kernel connected the socket to itself.
    Itself,
    Failed(Errno),
}

impl Dial {
    pub(super) fn new(server: SocketAddr) -> Self {
        let ports = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range");
        let ports = ports.ok().and_then(|text| parse_ports(&text));
        Self {
            server,
            source: 0,
            may_meet_itself: ports.is_none_or(|ports| ports.contains(&server.port())),
        }
    }

    pub(super) fn begin(&mut self) -> Result<OwnedFd, NoConnection> {
        for _ in 0..SOURCE_MAX {
            match self.try_begin() {
                Err(NoConnection::Ports) if self.server.ip() == IpAddr::V4(Ipv4Addr::LOCALHOST) => {
                    self.source = match self.source {
                        0 => 2,
                        SOURCE_MAX => 0,
                        source => source + 1,
                    };
                }
                outcome => return outcome,
            }
        }
        Err(NoConnection::Ports)
    }

    fn try_begin(&self) -> Result<OwnedFd, NoConnection> {
        let family = match self.server {
            SocketAddr::V4(_) => AddressFamily::INET,
            SocketAddr::V6(_) => AddressFamily::INET6,
        };
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let fd = socket_with(family, SocketType::STREAM, flags, None).map_err(no_connection)?;
        if self.source != 0 {
            let source = Ipv4Addr::new(127, 0, 0, self.source);
            bind_source(&fd, source).map_err(no_connection)?;
        }
        match connect(&fd, &self.server) {
            Ok(()) | Err(Errno::INPROGRESS) => {}
            Err(error) => return Err(no_connection(error)),
        }
        if self.may_meet_itself
            && getsockname(&fd).is_ok_and(|own| SocketAddr::try_from(own) == Ok(self.server))
        {
            return Err(NoConnection::Itself);
        }
        Ok(fd)
    }
}

fn no_connection(error: Errno) -> NoConnection {
    match error {
        Errno::MFILE | Errno::NFILE => NoConnection::Descriptors,
        Errno::ADDRNOTAVAIL | Errno::ADDRINUSE => NoConnection::Ports,
        error => NoConnection::Failed(error),
    }
}

fn parse_ports(text: &str) -> Option<RangeInclusive<u16>> {
    let mut words = text.split_ascii_whitespace().map(str::parse);
    Some(words.next()?.ok()?..=words.next()?.ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_ports() {
        assert_eq!(parse_ports("32768\t60999\n"), Some(32_768..=60_999));
        assert_eq!(parse_ports("32768"), None);
        assert_eq!(parse_ports(""), None);
    }

    #[test]
    fn every_source_address_can_be_used() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let mut dial = Dial::new(listener.local_addr().unwrap());
        for source in [0, 2, SOURCE_MAX] {
            dial.source = source;
            let _connecting = dial.begin().unwrap();
            let (_, peer) = listener.accept().unwrap();
            let expected = if source == 0 { 1 } else { source };
            assert_eq!(peer.ip(), IpAddr::V4(Ipv4Addr::new(127, 0, 0, expected)));
        }
    }
}
