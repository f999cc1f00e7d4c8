//! The origin of a login attempt, in the precision at which guesses are counted.

use std::net::{IpAddr, Ipv6Addr};

/// The origin of a login attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    /// This machine: a loopback address or a Unix socket.
    Local,
    /// A remote machine; for IPv6 the network of 64 bits, which usually belongs to one machine.
    Remote(IpAddr),
}

impl Origin {
    /// The origin of an address.
    pub fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            address if address.is_loopback() => Self::Local,
            IpAddr::V6(address) => {
                let network = u128::from(address) >> 64 << 64;
                Self::Remote(Ipv6Addr::from(network).into())
            }
            address @ IpAddr::V4(_) => Self::Remote(address),
        }
    }
}
