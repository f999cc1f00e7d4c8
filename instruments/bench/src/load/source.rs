//! Source addresses. Drivers with many connections spread them over the addresses of the loopback, since one address
//! has about 28,000 ports for one server.
//!
//! A port reserved by `bind` is reserved for the whole machine: during the connection, and for another minute in
//! TIME_WAIT, no program gets that port from the kernel. With enough of them no program here can connect any more. So
//! the address is bound and the port is left to `connect`, for which it must be free towards one server only.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::AsFd;
use std::time::Duration;

use nix::sys::socket::{SetSockOpt, sockopt};
use rustix::io::Errno;
use rustix::net::bind;
use rustix::net::sockopt::set_socket_linger;

/// Makes a socket connect from `source`, and from any port that is free towards its server.
pub(crate) fn bind_source(fd: &impl AsFd, source: Ipv4Addr) -> Result<(), Errno> {
    let without_port = sockopt::IpBindAddressNoPort.set(fd, &true);
    without_port.map_err(|error| Errno::from_raw_os_error(error as i32))?;
    bind(fd, &SocketAddrV4::new(source, 0))
}

/// Makes a TCP connection end with a reset when the socket closes, so that neither end waits in TIME_WAIT.
pub(crate) fn reset_when_closed(fd: &impl AsFd) -> Result<(), Errno> {
    set_socket_linger(fd, Some(Duration::ZERO))
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, SocketAddr, TcpListener};

    use rustix::net::{AddressFamily, SocketType, connect, getsockname, socket};

    use super::*;

    fn connected(server: SocketAddr) -> (std::os::fd::OwnedFd, SocketAddr) {
        let fd = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
        bind_source(&fd, Ipv4Addr::new(127, 0, 0, 2)).unwrap();
        let before = SocketAddr::try_from(getsockname(&fd).unwrap()).unwrap();
        assert_eq!(before.port(), 0, "bind reserved a port");
        connect(&fd, &server).unwrap();
        let own = SocketAddr::try_from(getsockname(&fd).unwrap()).unwrap();
        (fd, own)
    }

    #[test]
    fn a_port_is_reserved_towards_one_server_only() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (fd, own) = connected(listener.local_addr().unwrap());
        assert_eq!(own.ip(), IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2)));
        assert_ne!(own.port(), 0);
        reset_when_closed(&fd).unwrap();
        let (mut accepted, _) = listener.accept().unwrap();
        drop(fd);
        let error = std::io::Read::read(&mut accepted, &mut [0]).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    }
}
