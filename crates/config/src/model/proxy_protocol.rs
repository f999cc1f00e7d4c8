//! Proxies that send the client's address first.

use std::net::IpAddr;

/// The addresses whose connections begin with a header of the PROXY protocol.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProxyProtocol {
    /// Networks, with the length of the prefix.
    pub from: Vec<(IpAddr, u8)>,
    /// Clients of the Unix socket.
    pub from_unix: bool,
}

impl ProxyProtocol {
    /// Whether the address belongs to a proxy.
    pub fn is_from(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        let mut networks = self.from.iter();
        networks.any(|(network, bits)| is_in(address, network.to_canonical(), (*bits).into()))
    }
}

fn is_in(address: IpAddr, network: IpAddr, bits: u32) -> bool {
    match (address, network) {
        (IpAddr::V4(address), IpAddr::V4(network)) => {
            let differs = address.to_bits() ^ network.to_bits();
            differs.leading_zeros() >= bits.min(32)
        }
        (IpAddr::V6(address), IpAddr::V6(network)) => {
            let differs = address.to_bits() ^ network.to_bits();
            differs.leading_zeros() >= bits
        }
        _ => false,
    }
}
