//! Connections of proxies that send the client's address first (PROXY protocol).
//!
//! The header comes before TLS and before admission, so that every limit, log line and listing has the client's address.
//! The keeper's thread waits for it: serving threads have no timers. A listener without proxies pays one branch for each
//! connection.

use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use crosstie_config::ProxyProtocol;
use crosstie_transport::descriptors::Room;
use crosstie_transport::proxy_header::ProxyHeader;
use crosstie_transport::{PeerAddress, Socket, Unproxied, Workers, receive_proxy_header};
use tokio::task::JoinSet;

use crate::counters::{Counter, counters};
use crate::report;

/// Maximum number of connections of a listener that wait for their header. Proxies send it with the first packet.
const WAITING_MAX: usize = 1024;

/// Connections that wait for their header. They end with this.
#[derive(Default)]
pub(crate) struct Proxied(JoinSet<()>);

impl Proxied {
    /// Waits for the header of a connection, at most that long, and then leads the connection on.
    pub(crate) fn add(
        &mut self,
        socket: Socket,
        timeout: Duration,
        workers: &Workers,
        lead: impl FnOnce(Socket) + Send + 'static,
    ) {
        while self.0.try_join_next().is_some() {}
        let proxy = socket.peer();
        if self.0.len() >= WAITING_MAX || Room::left_by(&socket) == Room::Last {
            return refuse(
                proxy,
                &"too many connections wait for a PROXY protocol header",
            );
        }
        let waiting = async move {
            match tokio::time::timeout(timeout, receive_proxy_header(socket)).await {
                Ok(Ok((socket, header))) => lead(socket.with_peer(client(proxy, header))),
                Ok(Err(Unproxied::Unused)) => counters().count(Counter::ConnectionsClosedUnused),
                Ok(Err(why)) => refuse(proxy, &why),
                Err(_) => {
                    refuse(
                        proxy,
                        &"no PROXY protocol header within the time of a handshake",
                    );
                }
            }
        };
        self.0.spawn_on(waiting, &workers.keeper_handle());
    }
}

fn refuse(proxy: PeerAddress, why: &dyn fmt::Display) {
    counters().count(Counter::ConnectionsRefused);
    report::unproxied(proxy, why);
}

/// Whether a connection from that address begins with a header.
pub(crate) fn sends_header(of: &ProxyProtocol, from: PeerAddress) -> bool {
    match from {
        PeerAddress::Tcp(address) => of.is_from(address.ip()),
        PeerAddress::Unix(_) => of.from_unix,
    }
}

/// The client's address. A loopback address names the proxy's machine: it counts as this one only if the proxy is here.
fn client(proxy: PeerAddress, header: ProxyHeader) -> PeerAddress {
    let is_here = |address: IpAddr| address.to_canonical().is_loopback();
    let is_proxy_here = match proxy {
        PeerAddress::Tcp(proxy) => is_here(proxy.ip()),
        PeerAddress::Unix(_) => true,
    };
    match header.client {
        Some(client) if is_proxy_here || !is_here(client.ip()) => PeerAddress::Tcp(client),
        _ => proxy,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(text: &str) -> PeerAddress {
        match text.parse() {
            Ok(address) => PeerAddress::Tcp(address),
            Err(_) => PeerAddress::Unix(None),
        }
    }

    #[test]
    fn the_header_names_the_client_unless_it_claims_to_be_this_machine() {
        for (proxy, stated, expected) in [
            ("10.0.0.1:1", "192.0.2.1:2", "192.0.2.1:2"),
            ("10.0.0.1:1", "", "10.0.0.1:1"),
            ("10.0.0.1:1", "127.0.0.1:2", "10.0.0.1:1"),
            ("10.0.0.1:1", "[::1]:2", "10.0.0.1:1"),
            ("10.0.0.1:1", "[::ffff:127.0.0.1]:2", "10.0.0.1:1"),
            ("127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:2"),
            ("[::1]:1", "192.0.2.1:2", "192.0.2.1:2"),
            ("unix", "127.0.0.1:2", "127.0.0.1:2"),
            ("unix", "", "unix"),
        ] {
            let header = ProxyHeader {
                bytes: 28,
                client: stated.parse().ok(),
            };
            assert_eq!(
                client(peer(proxy), header),
                peer(expected),
                "{proxy} {stated}"
            );
        }
    }

    #[test]
    fn a_header_sends_header_from_configured_addresses_alone() {
        let of = ProxyProtocol {
            from: vec![
                ([10, 0, 0, 0].into(), 8),
                ([192, 0, 2, 7].into(), 32),
                ("2001:db8::".parse().expect("is an address"), 32),
            ],
            from_unix: false,
        };
        for (from, expected) in [
            ("10.255.0.1:1", true),
            ("11.0.0.1:1", false),
            ("192.0.2.7:1", true),
            ("192.0.2.6:1", false),
            ("[::ffff:10.0.0.1]:1", true),
            ("[2001:db8:1::1]:1", true),
            ("[2001:db9::1]:1", false),
            ("unix", false),
        ] {
            assert_eq!(sends_header(&of, peer(from)), expected, "{from}");
        }
    }
}
