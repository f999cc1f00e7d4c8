//! The origin of an attempt to log in, as far as it tells people apart.

use std::net::{IpAddr, Ipv6Addr};

/// The origin of an attempt to log in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    /// This machine: a loopback address, or a Unix socket.
    Local,
    /// A machine; of IPv6 the network of 64 bits, all of which mostly is one machine's.
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
