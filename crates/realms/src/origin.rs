//! The serving place of a session in WELCOME, as in Crossbar.io: programs log it, and use it to find their node in a
//! cluster.

use std::net::SocketAddr;
use std::sync::LazyLock;

use crosstie_transport::PeerAddress;
use crosstie_wamp::Value;
use crosstie_wamp::codec::Detail;

use crate::certificate;
use crate::peer::Peer;

/// Node, worker, the client's own address, process.
const KEYS: [&str; 4] = ["x_cb_node", "x_cb_worker", "x_cb_peer", "x_cb_pid"];

/// The serving place of one session.
pub(crate) struct Origin<'o> {
    node: &'o str,
    worker: &'o str,
    /// The client's own address.
    peer: String,
}

impl<'o> Origin<'o> {
    pub(crate) fn of(peer: &Peer, node: &'o str, worker: &'o str) -> Self {
        let peer = address(peer.connection.peer());
        Self { node, worker, peer }
    }

    pub(crate) fn details(&self) -> [(&'static str, Detail<'_>); 4] {
        let [node, worker, peer, process] = KEYS;
        [
            (node, Detail::Text(self.node)),
            (worker, Detail::Text(self.worker)),
            (peer, Detail::Text(&self.peer)),
            (process, Detail::Number(process_id())),
        ]
    }
}

/// Whether this is a key of the serving place.
pub(crate) fn is_key(key: &str) -> bool {
    KEYS.contains(&key)
}

/// The system is asked once.
fn process_id() -> u64 {
    static ID: LazyLock<u64> = LazyLock::new(|| u64::from(std::process::id()));
    *ID
}

/// The connection's details for an authenticator, with Crossbar.io's keys. Values that the router does not keep are
/// null.
pub(crate) fn transport(peer: &Peer, is_secure: bool) -> Value {
    let framing = peer.wire.framing.name();
    let known = [
        (
            "channel_type",
            Value::from(if is_secure { "tls" } else { "tcp" }),
        ),
        ("channel_framing", Value::from(framing)),
        (
            "channel_serializer",
            Value::from(peer.wire.serializer.name()),
        ),
        (
            "peer",
            Value::from(address(peer.connection.peer()).as_str()),
        ),
        ("is_server", Value::from(true)),
        ("is_secure", Value::from(is_secure)),
        ("own_pid", Value::from(process_id())),
    ];
    let unknown = [
        "own",
        "own_tid",
        "own_fd",
        "channel_id",
        "websocket_protocol",
        "websocket_extensions_in_use",
        "http_headers_received",
        "http_headers_sent",
        "http_cbtid",
    ];
    let shown = peer.connection.peer_certificate();
    let shown = shown.and_then(|der| certificate::details(&der));
    let shown = shown.unwrap_or(Value::Null);
    let certificates = [("peer_cert", shown.clone()), ("client_cert", shown)];
    let known = known.into_iter().chain(certificates);
    let known = known.map(|(key, value)| (key.to_owned(), value));
    let unknown = unknown.map(|key| (key.to_owned(), Value::Null));
    Value::Dict(known.chain(unknown).collect())
}

/// In Crossbar.io's notation.
pub(crate) fn address(peer: PeerAddress) -> String {
    match peer {
        PeerAddress::Tcp(SocketAddr::V4(address)) => format!("tcp4:{address}"),
        PeerAddress::Tcp(SocketAddr::V6(address)) => {
            format!("tcp6:{}:{}", address.ip(), address.port())
        }
        PeerAddress::Unix(_) => "unix".to_owned(),
    }
}
