//! What WELCOME says of where a session is served, as Crossbar.io's does: programs log it, and find
//! themselves by it in a cluster.

use std::net::SocketAddr;

use crosstie_transport::PeerAddress;
use crosstie_wamp::{Dict, Value};

use crate::certificate;
use crate::wamp::peer::Peer;

/// Node, worker, the client's own address, process.
const KEYS: [&str; 4] = ["x_cb_node", "x_cb_worker", "x_cb_peer", "x_cb_pid"];

/// Adds to WELCOME an `authextra`, and there and at the top node, worker, process and the client's own
/// address, where the names of the node and the worker are to be told.
pub(crate) fn add(welcome: &mut Dict, mut extra: Dict, peer: &Peer, own: Option<(&str, &str)>) {
    if let Some((node, worker)) = own {
        let origin = [
            Value::from(node),
            Value::from(worker),
            Value::from(address(peer.connection.peer()).as_str()),
            Value::from(u64::from(std::process::id())),
        ];
        // What a client says of itself is not the router's word.
        extra.retain(|(key, _)| !KEYS.contains(&key.as_str()));
        for (key, value) in KEYS.into_iter().zip(origin) {
            welcome.push((key.to_owned(), value.clone()));
            extra.push((key.to_owned(), value));
        }
    }
    if !extra.is_empty() {
        welcome.push(("authextra".to_owned(), Value::Dict(extra)));
    }
}

/// Takes away again what [`add`] has said of the router, and of its features those that are no standard's, for a
/// client that does not take so long a WELCOME.
pub(crate) fn shorten(welcome: &mut Dict) {
    let is_own = |key: &str| KEYS.contains(&key);
    welcome.retain_mut(|(key, value)| match value {
        Value::Dict(roles) if key == "roles" => {
            roles.iter_mut().for_each(|(_, role)| keep_standard(role));
            true
        }
        Value::Dict(extra) if key == "authextra" => {
            extra.retain(|(key, _)| !is_own(key));
            !extra.is_empty()
        }
        _ => !is_own(key),
    });
}

fn keep_standard(role: &mut Value) {
    let Value::Dict(role) = role else { return };
    for (_, features) in role {
        if let Value::Dict(features) = features {
            features.retain(|(name, _)| !name.starts_with("x_"));
        }
    }
}

/// What an authenticator is told of the connection: the keys are Crossbar.io's, and what is not kept here
/// until somebody asks is null.
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
        ("own_pid", Value::from(u64::from(std::process::id()))),
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

/// In Crossbar.io's words.
pub(crate) fn address(peer: PeerAddress) -> String {
    match peer {
        PeerAddress::Tcp(SocketAddr::V4(address)) => format!("tcp4:{address}"),
        PeerAddress::Tcp(SocketAddr::V6(address)) => {
            format!("tcp6:{}:{}", address.ip(), address.port())
        }
        PeerAddress::Unix(_) => "unix".to_owned(),
    }
}
