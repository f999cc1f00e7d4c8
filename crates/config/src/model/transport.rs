//! Listeners and their protocols.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crosstie_auth::wamp::Methods;
use crosstie_routing::RoleLimits;

use super::{
    Allowed, AmqpManagement, AmqpTransport, Cookie, Mqtt, Page, Ping, ProxyProtocol, Serializer,
    SystemdEndpoint, TcpEndpoint, Tls, Web, WebPaths, WebService, WebSocketOptions,
    WebSocketTestee,
};

/// One listener and its protocol.
#[derive(Clone, Debug, PartialEq)]
pub struct Transport {
    pub id: String,
    pub endpoint: Endpoint,
    pub kind: TransportKind,
    /// Without it `limits.sessions_max` is the only bound.
    pub connections_max: Option<usize>,
    pub limits: ListenerLimits,
    /// The pages for plain HTTP requests.
    pub pages: Vec<Page>,
    /// Accepted values of `Host`.
    pub allowed_hosts: Allowed,
    /// The roles, by realm, that sessions may have; any without it.
    pub admits: Option<Admits>,
}

/// Roles by realm.
pub type Admits = BTreeMap<String, BTreeSet<String>>;

/// Limits of a listener. The node's apply if they are lower.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ListenerLimits {
    pub connections_per_second_max: Option<u32>,
    /// Sessions with the same authid.
    pub authid_sessions_max: Option<usize>,
    /// Of each session.
    pub each: RoleLimits,
}

/// The protocol of a listener.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum TransportKind {
    RawSocket(RawSocket),
    /// WebSocket at any path.
    WebSocket(WebSocket),
    /// The first bytes of a connection decide its protocol.
    Universal {
        mqtt: Option<Mqtt>,
        rawsocket: Option<RawSocket>,
        /// By path, with its leading slash.
        websocket: Vec<(String, WebSocket)>,
        /// Services at other paths.
        web: Option<Web>,
    },
    /// MQTT; it leads to a realm.
    Mqtt(Mqtt),
    /// HTTP.
    Web(Web),
    /// AMQP 0-9-1; it leads to the worker's vhosts.
    Amqp(AmqpTransport),
    /// RabbitMQ's management HTTP API of the worker's broker.
    AmqpManagement(AmqpManagement),
    /// The metrics of the worker's broker, under RabbitMQ's names.
    AmqpPrometheus,
    /// An echo, for tests and measurements; it leads to no realm.
    Testee(Testee),
}

impl TransportKind {
    /// Whether its worker needs a broker.
    pub fn is_of_broker(&self) -> bool {
        matches!(
            self,
            Self::Amqp(_) | Self::AmqpManagement(_) | Self::AmqpPrometheus
        )
    }

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

    /// MQTT beside others or alone, over WebSockets too.
    pub fn mqtt(&self) -> Vec<&Mqtt> {
        let websockets = self.websockets().into_iter();
        let over = websockets.filter_map(|websocket| websocket.mqtt.as_deref());
        let direct = match self {
            Self::Mqtt(mqtt) => Some(mqtt),
            Self::Universal { mqtt, .. } => mqtt.as_ref(),
            _ => None,
        };
        direct.into_iter().chain(over).collect()
    }

    /// Every web service, nested ones included.
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

/// The echo of a testee.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum TesteeKind {
    /// Every byte.
    Stream,
    /// Every WebSocket message.
    WebSocket(WebSocketTestee),
}

/// Address of a listener.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Endpoint {
    Tcp(TcpEndpoint),
    Unix {
        path: String,
        backlog: u32,
        proxies: Option<ProxyProtocol>,
    },
    /// Opened by the service manager; the address is known when the node runs.
    Systemd(SystemdEndpoint),
}

impl Endpoint {
    /// Whether clients may or must show certificates.
    pub fn asks_for_certificates(&self) -> bool {
        let tls = self.tls();
        tls.is_some_and(|tls| !tls.client_authorities.is_empty())
    }

    /// The files of TLS, if the listener has it.
    pub fn tls(&self) -> Option<&Tls> {
        match self {
            Self::Tcp(tcp) => tcp.tls.as_ref(),
            Self::Systemd(socket) => socket.tls.as_ref(),
            Self::Unix { .. } => None,
        }
    }

    /// The proxies that send the client's address first.
    pub fn proxy_protocol(&self) -> Option<&ProxyProtocol> {
        match self {
            Self::Tcp(tcp) => tcp.proxies.as_ref(),
            Self::Systemd(socket) => socket.proxies.as_ref(),
            Self::Unix { proxies, .. } => proxies.as_ref(),
        }
    }

    /// Whether a listener here has the address of `other`, so that one can take over the other's socket.
    pub fn has_address_of(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Tcp(one), Self::Tcp(other)) => {
                let address =
                    |tcp: &TcpEndpoint| (tcp.interface, tcp.port, tcp.port_last, tcp.shared);
                address(one) == address(other)
            }
            (Self::Unix { path: one, .. }, Self::Unix { path: other, .. }) => one == other,
            (Self::Systemd(one), Self::Systemd(other)) => one.name == other.name,
            _ => false,
        }
    }

    /// Whether the system or a range decides on the port, so that several listeners have the same address here.
    pub fn is_chosen(&self) -> bool {
        matches!(self, Self::Tcp(tcp) if tcp.port == 0 || tcp.port_last.is_some())
    }

    /// Whether only this machine's loopback reaches the address.
    pub fn is_loopback(&self) -> bool {
        match self {
            Self::Tcp(tcp) => tcp.interface.to_canonical().is_loopback(),
            Self::Unix { .. } | Self::Systemd(_) => false,
        }
    }
}

/// WAMP over RawSocket.
#[derive(Clone, Debug, PartialEq)]
pub struct RawSocket {
    pub serializers: Vec<Serializer>,
    /// Authentication methods.
    pub auth: Arc<Methods>,
    pub message_bytes_max: usize,
    pub ping: Ping,
}

/// WAMP over WebSocket.
#[derive(Clone, Debug, PartialEq)]
pub struct WebSocket {
    /// Public address; by default the listener's.
    pub url: Option<String>,
    pub serializers: Vec<Serializer>,
    /// Authentication methods.
    pub auth: Arc<Methods>,
    pub cookie: Option<Box<Cookie>>,
    /// For clients that ask for MQTT's subprotocol.
    pub mqtt: Option<Box<Mqtt>>,
    pub options: WebSocketOptions,
}
