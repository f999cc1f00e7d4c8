//! A listener's way into the realms: the endpoints that its WAMP connections come by, and their bounds.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crosstie_config::{self as model, Admits, Allowed, WebSocket};
use crosstie_front::admission::Excess;
use crosstie_front::listen::Listening;
use crosstie_front::origins::host_may_enter;
use crosstie_routing::RoleLimits;
use crosstie_wamp::codec;
use crosstie_wamp::framing::websocket::{self, Request};

use crate::authids::Authids;
use crate::cookies::Jar;
use crate::endpoints::{Endpoints, RawSocketEndpoint, WebSocketEndpoint};
use crate::http::Http;
use crate::mqtt::{Mqtt, MqttEndpoint};
use crate::probes::{FAVICON, WEBSOCKET_STATUS};
use crate::realms::Realms;

/// The state shared by all WAMP connections of one listener.
pub struct Entrance {
    pub listening: Arc<Listening>,
    pub realms: Arc<Realms>,
    pub decoding: codec::Limits,
    pub(crate) rawsocket: Option<RawSocketEndpoint>,
    pub(crate) websockets: Vec<WebSocketEndpoint>,
    /// MQTT on the port, beside other protocols or alone.
    pub mqtt: Option<Arc<MqttEndpoint>>,
    /// The server of MQTT.
    pub(crate) mqtt_server: Option<Arc<dyn Mqtt>>,
    /// The server of other requests.
    pub http: Option<Arc<dyn Http>>,
    pub allowed_hosts: Allowed,
    /// Limits of their sessions.
    pub(crate) session_limits: RoleLimits,
    /// Set if the sessions of one authid are limited.
    pub(crate) authids: Option<Authids>,
    /// The roles that may join through it; `None` admits all.
    pub(crate) admits: Option<Admits>,
    /// Every session was sent GOODBYE.
    goodbye_said: AtomicBool,
}

impl Entrance {
    /// For clients of a transport.
    pub fn new(
        realms: &Arc<Realms>,
        listening: Arc<Listening>,
        transport: &model::Transport,
        endpoints: Endpoints,
        http: Option<Arc<dyn Http>>,
        mqtt_server: Option<Arc<dyn Mqtt>>,
    ) -> Self {
        Self {
            session_limits: transport.limits.each,
            authids: transport.limits.authid_sessions_max.map(Authids::new),
            admits: transport.admits.clone(),
            rawsocket: endpoints.rawsocket,
            websockets: endpoints.websockets,
            mqtt: endpoints.mqtt,
            mqtt_server,
            http,
            ..Self::of_nothing(realms, listening, &transport.allowed_hosts)
        }
    }

    /// For operators: HTTP, and nothing else.
    pub fn of_http(
        realms: &Arc<Realms>,
        listening: Arc<Listening>,
        allowed_hosts: &Allowed,
        http: Arc<dyn Http>,
    ) -> Self {
        Self {
            http: Some(http),
            ..Self::of_nothing(realms, listening, allowed_hosts)
        }
    }

    fn of_nothing(realms: &Arc<Realms>, listening: Arc<Listening>, allowed: &Allowed) -> Self {
        Self {
            listening,
            decoding: realms.decoding,
            realms: Arc::clone(realms),
            rawsocket: None,
            websockets: Vec::new(),
            mqtt: None,
            mqtt_server: None,
            http: None,
            allowed_hosts: allowed.clone(),
            session_limits: RoleLimits::default(),
            authids: None,
            admits: None,
            goodbye_said: AtomicBool::new(false),
        }
    }

    /// MQTT on the listener, over WebSockets too.
    pub fn mqtt_endpoints(&self) -> impl Iterator<Item = &Arc<MqttEndpoint>> {
        let over = self.websockets.iter().filter_map(|w| w.mqtt.as_ref());
        self.mqtt.iter().chain(over)
    }

    /// Notes that every session of this listener is sent GOODBYE.
    pub fn note_goodbye(&self) {
        self.goodbye_said.store(true, Ordering::Relaxed);
    }

    pub(crate) fn has_said_goodbye(&self) -> bool {
        self.goodbye_said.load(Ordering::Relaxed)
    }

    pub fn is_stopping(&self) -> bool {
        self.listening.is_stopping()
    }

    /// Whether web services handle a WebSocket at that path. Endpoints beside the web services take precedence.
    pub(super) fn passes_websocket(&self, path: &str) -> bool {
        let is_own = |endpoint: &WebSocketEndpoint| !endpoint.is_service && endpoint.is_at(path);
        let http = self.http.as_ref();
        http.is_some_and(|http| http.takes_websocket(path)) && !self.websockets.iter().any(is_own)
    }

    /// Whether a request that opens no WebSocket is answered by pages or web services.
    pub(super) fn takes_http(&self, excess: Option<Excess>) -> bool {
        self.http.as_ref().is_some_and(|http| http.takes(excess))
    }

    /// The answer to any other request: its status, and the reason.
    pub fn answer(&self, request: &Request<'_>, excess: Option<Excess>) -> (u16, String) {
        if let Some(excess) = excess {
            return (503, excess.text().to_owned());
        }
        if let Err(reason) = host_may_enter(request.header("Host"), &self.allowed_hosts) {
            return (403, reason);
        }
        let found = self.websocket_at(request.path());
        match found.map(|endpoint| endpoint.shows_status(request.method)) {
            Some(true) if self.listening.bounds.is_stopping() => (503, "shutting down".to_owned()),
            Some(true) => (200, WEBSOCKET_STATUS.to_owned()),
            None if request.path() == FAVICON => (204, String::new()),
            None if !self.websockets.is_empty() => {
                (404, format!("no WebSocket at {}", request.path()))
            }
            _ => {
                let e = websocket::HandshakeError::NotUpgrade;
                (e.status(), e.to_string())
            }
        }
    }

    /// The cookies of a WebSocket with the same settings of them.
    pub(crate) fn jar(&self, options: &WebSocket) -> Option<Arc<Jar>> {
        let mut like = self.websockets.iter();
        let like = like.find(|endpoint| endpoint.options.cookie == options.cookie);
        like?.cookies.clone()
    }

    /// The WebSocket at `path`.
    pub fn websocket_at(&self, path: &str) -> Option<&WebSocketEndpoint> {
        self.websockets.iter().find(|endpoint| endpoint.is_at(path))
    }
}
