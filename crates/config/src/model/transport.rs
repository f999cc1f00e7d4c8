//! Listeners and what they speak.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use crosstie_auth::wamp::Methods;
use crosstie_routing::RoleLimits;

use super::{
    AmqpTransport, Cookie, Serializer, Tls, Web, WebPaths, WebService, WebSocketOptions,
    WebSocketTestee,
};

/// One listener and what it speaks.
#[derive(Clone, Debug, PartialEq)]
pub struct Transport {
    pub id: String,
    pub endpoint: Endpoint,
    pub kind: TransportKind,
    /// Only `limits.sessions_max` bounds it where not said.
    pub connections_max: Option<usize>,
    pub limits: ListenerLimits,
    /// The pages for plain HTTP requests.
    pub pages: Vec<Page>,
    /// The names by which browsers may reach it.
    pub allowed_hosts: Allowed,
    /// The roles, by realm, that sessions may have; any where not said.
    pub admits: Option<Admits>,
}

/// Roles by realm.
pub type Admits = BTreeMap<String, BTreeSet<String>>;

/// What those who come by a listener may have, where that is less than what the node lets anybody have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ListenerLimits {
    pub connections_per_second_max: Option<u32>,
    /// Sessions with the same authid.
    pub authid_sessions_max: Option<usize>,
    /// Of each session.
    pub each: RoleLimits,
}

/// Which names a browser may say: those of pages' origins, or of the host that it means to reach.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Allowed {
    All,
    /// Those of this machine's loopback.
    Loopback,
    /// Patterns with `*`.
    Matching(Vec<String>),
}

/// The protocol of a listener.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum TransportKind {
    RawSocket(RawSocket),
    /// WebSocket at any path.
    WebSocket(WebSocket),
    /// A connection's protocol is told from its first bytes.
    Universal {
        rawsocket: Option<RawSocket>,
        /// By path, with its leading slash.
        websocket: Vec<(String, WebSocket)>,
        /// What is found at other paths.
        web: Option<Web>,
    },
    /// HTTP.
    Web(Web),
    /// AMQP 0-9-1; it leads to the worker's vhosts.
    Amqp(AmqpTransport),
    /// An echo, for tests and measurements; it leads to no realm.
    Testee(Testee),
}

impl TransportKind {
    /// Every WebSocket that leads to a realm.
    pub fn websockets(&self) -> Vec<&WebSocket> {
        let mut all = Vec::new();
        match self {
            Self::WebSocket(websocket) => all.push(websocket),
            Self::Universal { websocket, web, .. } => {
                all.extend(websocket.iter().map(|(_, websocket)| websocket));
                all.extend(web.iter().flat_map(|web| websockets(&web.paths)));
            }
            Self::Web(web) => all.extend(websockets(&web.paths)),
            _ => {}
        }
        all
    }

    /// Every web service, with those below others.
    pub fn web_services(&self) -> Vec<&WebService> {
        match self {
            Self::Universal { web: Some(web), .. } | Self::Web(web) => services(&web.paths),
            _ => Vec::new(),
        }
    }
}

fn websockets(paths: &WebPaths) -> impl Iterator<Item = &WebSocket> {
    services(paths)
        .into_iter()
        .filter_map(|service| match service {
            WebService::WebSocket(websocket) => Some(&**websocket),
            _ => None,
        })
}

fn services(paths: &WebPaths) -> Vec<&WebService> {
    let mut all = Vec::new();
    for (_, service) in paths {
        all.push(service);
        if let WebService::Path(paths) = service {
            all.extend(services(paths));
        }
    }
    all
}

/// An echo.
#[derive(Clone, Debug, PartialEq)]
pub struct Testee {
    pub kind: TesteeKind,
    /// The log names each connection.
    pub debug: bool,
}

/// What comes back.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum TesteeKind {
    /// Every byte.
    Stream,
    /// Every WebSocket message.
    WebSocket(WebSocketTestee),
}

/// An HTTP page that the router answers with itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Page {
    /// `/health`
    Health,
    /// `/metrics`, in Prometheus form.
    Metrics,
    /// `/`, for people.
    Status,
}

/// Where a listener listens.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Endpoint {
    Tcp(TcpEndpoint),
    Unix { path: String, backlog: u32 },
}

impl Endpoint {
    /// Whether clients may or must show certificates.
    pub fn asks_for_certificates(&self) -> bool {
        let Self::Tcp(TcpEndpoint { tls: Some(tls), .. }) = self else {
            return false;
        };
        !tls.client_authorities.is_empty()
    }

    /// Whether it is an address that nobody reaches but over this machine's loopback.
    pub fn is_loopback(&self) -> bool {
        match self {
            Self::Tcp(tcp) => tcp.interface.to_canonical().is_loopback(),
            Self::Unix { .. } => false,
        }
    }
}

/// A TCP listener.
#[derive(Clone, Debug, PartialEq)]
pub struct TcpEndpoint {
    pub interface: IpAddr,
    /// 0 takes any free port.
    pub port: u16,
    /// The last of the ports, from that one on, of which the first that is free is taken.
    pub port_last: Option<u16>,
    pub backlog: u32,
    /// `SO_REUSEPORT`: several processes listen on the port.
    pub shared: bool,
    /// `TCP_USER_TIMEOUT`: how long sent bytes may stay unacknowledged; zero: the system decides; not
    /// said: as long as a peer may take nothing.
    pub user_timeout: Option<Duration>,
    pub tls: Option<Tls>,
}

/// WAMP over RawSocket.
#[derive(Clone, Debug, PartialEq)]
pub struct RawSocket {
    pub serializers: Vec<Serializer>,
    /// How sessions prove who they are.
    pub auth: Arc<Methods>,
    pub message_bytes_max: usize,
    pub ping: Ping,
}

/// WAMP over WebSocket.
#[derive(Clone, Debug, PartialEq)]
pub struct WebSocket {
    /// The address that clients are told; the listener's own where not said.
    pub url: Option<String>,
    pub serializers: Vec<Serializer>,
    /// How sessions prove who they are.
    pub auth: Arc<Methods>,
    pub cookie: Option<Box<Cookie>>,
    pub options: WebSocketOptions,
}

/// Where cookies are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CookieStore {
    Memory,
    /// A path.
    File(String),
}

/// How a silent peer is found to be dead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ping {
    /// How long a connection may be silent before it is pinged; no pings where not said.
    pub interval: Option<Duration>,
    /// How long the answer may take; a missing answer ends nothing where not said.
    pub timeout: Option<Duration>,
    pub payload_bytes: usize,
    /// Whether anything the peer sends counts as an answer.
    pub restart_on_any_traffic: bool,
}

impl Ping {
    pub const NONE: Self = Self {
        interval: None,
        timeout: None,
        payload_bytes: 12,
        restart_on_any_traffic: true,
    };
}
