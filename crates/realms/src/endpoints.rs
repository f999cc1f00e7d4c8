//! The endpoints of a listener for WAMP clients: RawSocket, and WebSockets at their paths.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crosstie_auth::wamp::Methods;
use crosstie_config::{self as model, Mqtt, RawSocket, TransportKind, WebSocket};

use crate::cookies::Jar;
use crate::entrance::Entrance;
use crate::live_methods::LiveMethods;
use crate::mqtt::MqttEndpoint;
use crate::realms::Realms;
use crate::supervision::Supervision;

/// The endpoints of one listener.
#[derive(Default)]
pub struct Endpoints {
    pub(super) rawsocket: Option<RawSocketEndpoint>,
    pub(super) websockets: Vec<WebSocketEndpoint>,
    pub(super) mqtt: Option<Arc<MqttEndpoint>>,
}

/// RawSocket on a listener.
pub(crate) struct RawSocketEndpoint {
    pub options: RawSocket,
    pub auth: Arc<LiveMethods>,
    pub(crate) supervision: Arc<Supervision>,
}

/// WebSocket on a listener, at one path or, without one, at every path.
pub struct WebSocketEndpoint {
    pub path: Option<String>,
    /// A web service at its path.
    pub(crate) is_service: bool,
    pub options: WebSocket,
    pub auth: Arc<LiveMethods>,
    pub(crate) cookies: Option<Arc<Jar>>,
    pub(crate) supervision: Arc<Supervision>,
    /// For clients that ask for MQTT.
    pub(crate) mqtt: Option<Arc<MqttEndpoint>>,
}

impl Endpoints {
    /// Those of a transport of that kind, in that node directory. The cookies of an earlier transport that it replaces
    /// stay known.
    pub fn of(
        kind: &TransportKind,
        realms: &Arc<Realms>,
        directory: &Path,
        earlier: Option<&Entrance>,
    ) -> io::Result<Self> {
        let live = |auth: &Arc<Methods>| {
            LiveMethods::start(auth, directory, &realms.door, realms.revoking())
        };
        let rawsocket = |options: &RawSocket| {
            let auth = live(&options.auth)?;
            io::Result::Ok(RawSocketEndpoint::new(options, auth))
        };
        let mqtt = |mqtt: &Mqtt| {
            io::Result::Ok(Arc::new(MqttEndpoint {
                options: mqtt.options.clone(),
                auth: live(&mqtt.auth)?,
            }))
        };
        let websocket = |path: Option<&String>, options: &WebSocket| {
            let auth = live(&options.auth)?;
            let known = earlier.and_then(|earlier| earlier.jar(options));
            let mut endpoint = WebSocketEndpoint::new(path, options, auth, directory, known)?;
            endpoint.mqtt = options.mqtt.as_deref().map(mqtt).transpose()?;
            realms.jars.add(endpoint.cookies.as_ref());
            io::Result::Ok(endpoint)
        };
        let services = |web: &model::Web| {
            let service = |(path, options): (Option<String>, &WebSocket)| {
                let mut endpoint = websocket(path.as_ref(), options)?;
                endpoint.is_service = true;
                io::Result::Ok(endpoint)
            };
            let endpoints = web.websockets().into_iter().map(service);
            endpoints.collect::<io::Result<Vec<_>>>()
        };
        let mut endpoints = Self::default();
        match kind {
            TransportKind::RawSocket(options) => endpoints.rawsocket = Some(rawsocket(options)?),
            TransportKind::WebSocket(options) => {
                endpoints.websockets = vec![websocket(None, options)?];
            }
            TransportKind::Mqtt(options) => endpoints.mqtt = Some(mqtt(options)?),
            TransportKind::Universal {
                mqtt: beside,
                rawsocket: raw,
                websocket: paths,
                web,
            } => {
                endpoints.mqtt = beside.as_ref().map(mqtt).transpose()?;
                endpoints.rawsocket = raw.as_ref().map(rawsocket).transpose()?;
                let websockets = paths.iter().map(|(path, o)| websocket(Some(path), o));
                endpoints.websockets = websockets.collect::<io::Result<_>>()?;
                let of_web = web.iter().map(services).collect::<io::Result<Vec<_>>>()?;
                endpoints.websockets.extend(of_web.into_iter().flatten());
            }
            TransportKind::Web(web) => endpoints.websockets = services(web)?,
            // A configuration may contain secrets, and is not printed.
            _ => {
                return Err(io::Error::other(
                    "a transport of this type is not known here",
                ));
            }
        }
        Ok(endpoints)
    }

    /// How long a connection may take to become a session, if a WebSocket says so: which path a connection asks for
    /// shows only in its handshake.
    pub fn handshake_timeout(&self) -> Option<Duration> {
        let timeouts = self
            .websockets
            .iter()
            .filter_map(|w| w.options.options.open_handshake_timeout);
        timeouts.max()
    }

    /// Whether Nagle's algorithm is off; it is, unless a WebSocket here asks for it.
    pub fn nodelay(&self) -> bool {
        self.websockets
            .iter()
            .all(|endpoint| endpoint.options.options.tcp_nodelay)
    }
}

impl RawSocketEndpoint {
    pub(crate) fn new(options: &RawSocket, auth: Arc<LiveMethods>) -> Self {
        Self {
            auth,
            supervision: Arc::new(options.into()),
            options: options.clone(),
        }
    }
}

impl WebSocketEndpoint {
    /// Whether a request for that path belongs to this endpoint; a web service also owns the paths below its own.
    pub(crate) fn is_at(&self, path: &str) -> bool {
        self.path.as_deref().is_none_or(|at| {
            let below = path.strip_prefix(at);
            let is_below = |rest: &str| self.is_service && rest.starts_with('/');
            below.is_some_and(|rest| rest.is_empty() || is_below(rest))
        })
    }

    /// Whether a request that opens no WebSocket gets the status page.
    pub fn shows_status(&self, method: &str) -> bool {
        self.options.options.shows_status && matches!(method, "GET" | "HEAD")
    }

    pub(crate) fn new(
        path: Option<&String>,
        options: &WebSocket,
        auth: Arc<LiveMethods>,
        directory: &Path,
        known: Option<Arc<Jar>>,
    ) -> io::Result<Self> {
        let cookies = match (known, &options.cookie) {
            (None, Some(cookie)) => Some(Arc::new(Jar::open(cookie, directory)?)),
            (known, _) => known,
        };
        Ok(Self {
            path: path.cloned(),
            is_service: false,
            auth,
            cookies,
            supervision: Arc::new((&options.options).into()),
            options: options.clone(),
            mqtt: None,
        })
    }
}
