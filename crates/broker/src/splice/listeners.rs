//! The transport for connections from other nodes.

use std::net::SocketAddr;
use std::time::Duration;

use crosstie_config as model;

/// Maximum time for a node's greeting.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);

/// A client's time to answer `connection.close`; another node is between.
const CLOSING_TIMEOUT: Duration = Duration::from_secs(10);

const BACKLOG: u32 = 1024;

/// A listener at an address that vhosts name.
pub fn transport(address: SocketAddr, tls: Option<model::NodesTls>) -> model::Transport {
    let tls = tls.map(|files| model::Tls {
        key: files.key,
        certificate: files.certificate,
        chain_certificates: files.chain_certificates,
        client_authorities: files.authorities,
        named: Vec::new(),
        revocation_lists: Vec::new(),
        is_certificate_optional: false,
    });
    model::Transport {
        id: format!("nodes at {address}"),
        endpoint: model::Endpoint::Tcp(model::TcpEndpoint {
            interface: address.ip(),
            port: address.port(),
            port_last: None,
            backlog: BACKLOG,
            shared: false,
            user_timeout: None,
            proxies: None,
            tls,
        }),
        kind: model::TransportKind::Amqp(model::AmqpTransport {
            // The parameters negotiated with the client apply; this one is for refused clients.
            frame_bytes_max: crosstie_amqp::frame::FRAME_MIN_BYTES,
            channels_max: u16::MAX,
            heartbeat: None,
            mechanisms: Vec::new(),
            handshake_timeout: HANDSHAKE_TIMEOUT,
            closing_timeout: CLOSING_TIMEOUT,
        }),
        connections_max: None,
        limits: model::ListenerLimits::default(),
        pages: Vec::new(),
        allowed_hosts: model::Allowed::Loopback,
        admits: None,
    }
}
