//! Listeners that answer only to this machine's names: a proxy in front of one has to forward its own name, or the
//! configuration has to name the host that the proxy forwards.

use crosstie_config::{Allowed, Config, Endpoint, Transport, TransportKind, Worker};

/// A line for each such listener, with the keys that open it.
pub(crate) fn notes(config: &Config) -> Vec<String> {
    let routers = config.workers.iter().filter_map(|worker| match worker {
        Worker::Router(router) => Some(router),
        _ => None,
    });
    let transports = routers.flat_map(|router| &router.transports);
    transports.filter_map(note).collect()
}

fn note(transport: &Transport) -> Option<String> {
    let (Allowed::Loopback, Endpoint::Tcp(tcp)) = (&transport.allowed_hosts, &transport.endpoint)
    else {
        return None;
    };
    let websockets = transport.kind.websockets();
    let url = websockets
        .iter()
        .find_map(|websocket| websocket.url.as_deref());
    let name = url.and_then(public_name).unwrap_or("app.example.com");
    let is_http = matches!(
        transport.kind,
        TransportKind::Web(_) | TransportKind::Universal { web: Some(_), .. }
    );
    if websockets.is_empty() && !is_http && transport.pages.is_empty() {
        return None;
    }
    let origins = match websockets.is_empty() {
        true => String::new(),
        false => format!(
            ", and for its pages \"allowed_origins\": [\"https://{name}\"] in the options of the WebSocket"
        ),
    };
    Some(format!(
        "transport '{}' at {} answers to names of this machine alone (localhost, *.localhost, 127.0.0.0/8, ::1); behind a \
         proxy that passes on its own Host, set \"allowed_hosts\": [\"{name}\"]{origins}",
        transport.id, tcp.interface
    ))
}

/// The host of a URL by which clients reach the transport.
fn public_name(url: &str) -> Option<&str> {
    let (_, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?']).next()?;
    let name = match authority.rsplit_once(':') {
        Some((name, port)) if !port.ends_with(']') => name,
        _ => authority,
    };
    let is_here =
        name.eq_ignore_ascii_case("localhost") || name.starts_with("127.") || name == "[::1]";
    (!is_here && !name.is_empty()).then_some(name)
}
