//! What WELCOME says of where a session is served, as Crossbar.io's does: programs log it, and find
//! themselves by it in a cluster.

use std::net::SocketAddr;

use crosstie_transport::PeerAddress;
use crosstie_wamp::{Dict, Value};

use crate::router_state::RouterState;
use crate::wamp::peer::Peer;
use crate::wamp::realm::SharedRealm;

/// Adds node, worker, process and the client's own address at the top and in `authextra`, where the
/// realm tells them; and what an anonymous client has said in its `authextra`.
pub(crate) fn add(
    welcome: &mut Dict,
    hello: &Dict,
    realm: &SharedRealm,
    peer: &Peer,
    state: &RouterState,
) {
    let said = hello.iter().find(|(key, _)| key == "authextra");
    let mut extra = match said {
        Some((_, Value::Dict(extra))) => extra.clone(),
        _ => Dict::new(),
    };
    if realm.discloses_router {
        let origin = [
            ("x_cb_node", Value::from(state.node.as_str())),
            ("x_cb_worker", Value::from(state.id.as_str())),
            (
                "x_cb_peer",
                Value::from(address(peer.connection.peer()).as_str()),
            ),
            ("x_cb_pid", Value::from(u64::from(std::process::id()))),
        ];
        // What a client says of itself is not the router's word.
        extra.retain(|(key, _)| origin.iter().all(|(own, _)| key != own));
        for (key, value) in origin {
            welcome.push((key.to_owned(), value.clone()));
            extra.push((key.to_owned(), value));
        }
    }
    if !extra.is_empty() {
        welcome.push(("authextra".to_owned(), Value::Dict(extra)));
    }
}

/// In Crossbar.io's words.
fn address(peer: PeerAddress) -> String {
    match peer {
        PeerAddress::Tcp(SocketAddr::V4(address)) => format!("tcp4:{address}"),
        PeerAddress::Tcp(SocketAddr::V6(address)) => {
            format!("tcp6:{}:{}", address.ip(), address.port())
        }
        PeerAddress::Unix(_) => "unix".to_owned(),
    }
}
