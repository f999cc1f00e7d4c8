//! The URLs of a listener for clients.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use crosstie_config::{self as model, TesteeKind, TransportKind};
use crosstie_front::sockets::unix_path;
use crosstie_transport::Listener;

fn is_secure(endpoint: &model::Endpoint) -> bool {
    endpoint.tls().is_some()
}

/// The URLs of pages, at an operators' listener or on a transport.
pub(crate) fn of_pages(
    endpoint: &model::Endpoint,
    listener: &Listener,
    directory: &Path,
) -> Vec<String> {
    let secure = if is_secure(endpoint) { "s" } else { "" };
    let place = place(endpoint, listener, directory);
    let url = place.map(|place| place.url(&format!("http{secure}"), "/"));
    url.into_iter().collect()
}

/// The address of a bound listener.
fn place(endpoint: &model::Endpoint, listener: &Listener, directory: &Path) -> Option<Place> {
    match (unix_path(endpoint, directory), listener.local_address()) {
        (Some(path), _) => Some(Place::Unix(path)),
        (None, Ok(Some(address))) => Some(Place::Tcp(address.ip(), address.port())),
        _ => listener.local_path().ok().flatten().map(Place::Unix),
    }
}

/// The URLs of a transport, in the client library's form.
pub(crate) fn of_transport(
    transport: &model::Transport,
    listener: &Listener,
    directory: &Path,
) -> Vec<String> {
    let secure = if is_secure(&transport.endpoint) {
        "s"
    } else {
        ""
    };
    let Some(place) = place(&transport.endpoint, listener, directory) else {
        return Vec::new();
    };
    let rawsocket = || place.url(&format!("rs{secure}"), "");
    let mqtt = || place.url(&format!("mqtt{secure}"), "");
    let websocket = |path: &str| place.url(&format!("ws{secure}"), path);
    match &transport.kind {
        TransportKind::RawSocket(_) => vec![rawsocket()],
        TransportKind::WebSocket(options) => {
            vec![options.url.clone().unwrap_or_else(|| websocket("/"))]
        }
        TransportKind::Mqtt(_) => vec![mqtt()],
        TransportKind::Universal {
            mqtt: beside,
            rawsocket: raw,
            websocket: by_path,
            web,
        } => {
            let mut urls: Vec<_> = by_path.iter().map(|(path, _)| websocket(path)).collect();
            urls.extend(web.iter().flat_map(|web| of_web(web, &place, secure)));
            urls.extend(raw.as_ref().map(|_| rawsocket()));
            urls.extend(beside.as_ref().map(|_| mqtt()));
            urls
        }
        TransportKind::Web(web) => of_web(web, &place, secure),
        TransportKind::Amqp(_) => vec![place.url(&format!("amqp{secure}"), "")],
        TransportKind::AmqpManagement(_) => vec![place.url(&format!("http{secure}"), "/")],
        TransportKind::AmqpPrometheus => vec![place.url(&format!("http{secure}"), "/metrics")],
        TransportKind::Testee(testee) => vec![match &testee.kind {
            TesteeKind::WebSocket(options) => options.url.clone().unwrap_or_else(|| websocket("/")),
            _ => place.stream_url(is_secure(&transport.endpoint)),
        }],
        _ => Vec::new(),
    }
}

/// The WAMP endpoints among web services, and the services themselves.
fn of_web(web: &model::Web, place: &Place, secure: &str) -> Vec<String> {
    let url = |(path, websocket): (Option<String>, &model::WebSocket)| {
        let path = path.as_deref().unwrap_or("/");
        let url = websocket.url.clone();
        url.unwrap_or_else(|| place.url(&format!("ws{secure}"), path))
    };
    let mut urls: Vec<_> = web.websockets().into_iter().map(url).collect();
    urls.push(place.url(&format!("http{secure}"), "/"));
    urls
}

enum Place {
    Tcp(IpAddr, u16),
    Unix(PathBuf),
}

impl Place {
    /// For RawSocket and AMQP.
    fn stream_url(&self, secure: bool) -> String {
        match self {
            Self::Tcp(..) if secure => self.url("tls", ""),
            Self::Tcp(..) => self.url("tcp", ""),
            Self::Unix(socket) => format!("unix://{}", socket.display()),
        }
    }

    fn url(&self, scheme: &str, path: &str) -> String {
        match self {
            Self::Tcp(IpAddr::V6(ip), port) => format!("{scheme}://[{ip}]:{port}{path}"),
            Self::Tcp(ip, port) => format!("{scheme}://{ip}:{port}{path}"),
            Self::Unix(socket) if matches!(path, "" | "/") => {
                format!("{scheme}+unix://{}", socket.display())
            }
            Self::Unix(socket) => format!("{scheme}+unix://{}:{path}", socket.display()),
        }
    }
}
