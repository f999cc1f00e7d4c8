//! Transports and their protocols.

use std::sync::Arc;

use crosstie_auth::wamp::Methods;

use super::session_limits::listener_limits;
use super::{Builder, Names, bound};
use crate::catalogue::SERIALIZERS;
use crate::model::{
    Admits, Allowed, AmqpManagement, Deflate, Endpoint, Json, ListenerLimits, Mqtt, Page, Ping,
    RawSocket, Realm, Serializer, Testee, TesteeKind, Transport, TransportKind, WebService,
    WebSocket, WebSocketOptions, WebSocketTestee,
};
use crate::plain::{Plain, Section, Word, size};
use crate::problem::Problem;
use crate::tree::quoted;
use crate::view::View;

/// Properties of the transport that a protocol runs on.
#[derive(Clone, Copy)]
pub(super) struct Place<'r> {
    /// The worker's realms, if they are known.
    pub(super) realms: Option<&'r [Realm]>,
    /// Only this machine reaches it.
    is_loopback: bool,
    pub(super) is_tls: bool,
    /// Clients may show certificates.
    pub(super) sees_certificates: bool,
}

impl<'r> Place<'r> {
    /// The worker's realms, if they are known.
    pub(super) fn realms(self) -> Option<&'r [Realm]> {
        self.realms
    }

    pub(super) fn of(endpoint: &Endpoint, realms: Option<&'r [Realm]>) -> Self {
        Self {
            realms,
            is_loopback: endpoint.is_loopback(),
            is_tls: endpoint.tls().is_some(),
            sees_certificates: endpoint.asks_for_certificates(),
        }
    }
}

impl Builder<'_> {
    pub(super) fn transports(&mut self, worker: View<'_>, realms: &[Realm]) -> Vec<Transport> {
        let mut ids = Names::new("the transport id", "transport").of(worker.objects("transports"));
        let transports = worker.objects("transports");
        let transports = transports.map(|transport| {
            let id = ids.id(transport, self.problems);
            self.transport(transport, id, Some(realms))
        });
        let built: Vec<_> = transports.collect();
        self.check_mappings(worker, &built);
        built
    }

    /// A transport of a worker with these realms, if they are known.
    pub(crate) fn transport(
        &mut self,
        transport: View<'_>,
        id: String,
        realms: Option<&[Realm]>,
    ) -> Transport {
        let endpoint = self.endpoint(transport);
        let place = Place::of(&endpoint, realms);
        let kind = match transport.text("type") {
            Some("amqp") => TransportKind::Amqp(self.amqp_transport(transport, &endpoint)),
            Some("amqp.management") => {
                TransportKind::AmqpManagement(AmqpManagement::read(transport))
            }
            Some("amqp.prometheus") => TransportKind::AmqpPrometheus,
            _ => self.kind(transport, place),
        };
        let is_given = transport.has("admits") && transport.given("admits").is_some();
        let admits = is_given.then(|| admits(transport));
        if let Some(admits) = &admits {
            self.check_bridges(transport, &kind, admits);
        }
        Transport {
            id,
            admits,
            connections_max: transport.integer("max_connections").map(size),
            limits: match transport.text("type") {
                Some("mqtt" | "rawsocket" | "universal" | "web" | "websocket") => {
                    listener_limits(transport.section("limits"))
                }
                _ => ListenerLimits::default(),
            },
            allowed_hosts: match transport.text("type") {
                // With `allowed_origins` the configuration has decided on pages; the default for hosts would reject
                // them.
                Some("amqp.management" | "amqp.prometheus" | "universal" | "web" | "websocket") => {
                    let is_closed = endpoint.is_loopback() && !says_origins(&kind);
                    allowed(transport, "allowed_hosts", is_closed)
                }
                _ => Allowed::All,
            },
            endpoint,
            kind,
            pages: match transport.text("type") {
                Some("universal" | "web" | "websocket") => pages(transport, false),
                _ => Vec::new(),
            },
        }
    }

    /// The transport of a testee worker.
    pub(super) fn testee_transport(&mut self, worker: View<'_>) -> Transport {
        let transport = worker.section("transport");
        let id = transport.text("id").unwrap_or("transport1").to_owned();
        self.refuse_proxies(transport);
        Transport {
            id,
            endpoint: self.endpoint(transport),
            kind: testee(
                transport,
                TesteeKind::WebSocket(websocket_testee(transport)),
            ),
            connections_max: transport.integer("max_connections").map(size),
            limits: ListenerLimits::default(),
            pages: Vec::new(),
            allowed_hosts: Allowed::All,
            admits: None,
        }
    }

    /// Checks that `admits` has the roles of services with a session of their own.
    fn check_bridges(&mut self, transport: View<'_>, kind: &TransportKind, admits: &Admits) {
        for service in kind.web_services() {
            let bridge = match service {
                WebService::Caller(bridge) | WebService::Publisher(bridge) => bridge,
                WebService::Webhook(webhook) => &webhook.bridge,
                _ => continue,
            };
            let (realm, role) = (&bridge.realm, &bridge.role);
            if admits.get(realm).is_none_or(|roles| !roles.contains(role)) {
                let message = format!(
                    "a web service speaks in realm {} with role {}, which \"admits\" of its transport does not name",
                    quoted(realm),
                    quoted(role)
                );
                self.error(transport, "admits", message);
            }
        }
    }

    fn kind(&mut self, transport: View<'_>, place: Place<'_>) -> TransportKind {
        match transport.text("type") {
            Some("mqtt") => TransportKind::Mqtt(self.mqtt(transport, place)),
            Some("rawsocket") => TransportKind::RawSocket(self.rawsocket(transport, place)),
            Some("websocket") => TransportKind::WebSocket(self.websocket(transport, place)),
            Some("web") => TransportKind::Web(self.web(transport, place)),
            Some("stream.testee") => {
                self.refuse_proxies(transport);
                testee(transport, TesteeKind::Stream)
            }
            Some("websocket.testee") => {
                self.refuse_proxies(transport);
                let kind = TesteeKind::WebSocket(websocket_testee(transport));
                testee(transport, kind)
            }
            _ => self.universal(transport, place),
        }
    }

    fn universal(&mut self, transport: View<'_>, place: Place<'_>) -> TransportKind {
        let rawsocket = transport.object("rawsocket");
        let rawsocket = rawsocket.map(|rawsocket| self.rawsocket(rawsocket, place));
        let paths = transport.map("websocket").map(|(path, websocket)| {
            let path = if path == "/" {
                path.to_owned()
            } else {
                format!("/{path}")
            };
            (path, self.websocket(websocket, place))
        });
        let websocket: Vec<_> = paths.collect();
        let web = transport.object("web").map(|web| self.web(web, place));
        let mqtt = transport.object("mqtt");
        let mqtt = mqtt.map(|mqtt| self.mqtt(mqtt, place));
        if mqtt.is_none() && rawsocket.is_none() && websocket.is_empty() && web.is_none() {
            let message = "a universal transport needs \"mqtt\", \"rawsocket\", a path in \"websocket\", or \"web\"";
            self.problems
                .push(Problem::error(transport.span, message.into()));
        }
        TransportKind::Universal {
            mqtt,
            rawsocket,
            websocket,
            web,
        }
    }

    fn rawsocket(&mut self, object: View<'_>, place: Place<'_>) -> RawSocket {
        let options = object.section("options");
        let auth = object.section("auth");
        if auth.given("cookie").is_some() {
            let message = "\"cookie\" has no effect: RawSocket has no cookies";
            self.warn(auth, "cookie", message);
        }
        RawSocket {
            serializers: serializers(object),
            auth: self.auth_at(object, place),
            message_bytes_max: self.message_bytes_max(options),
            ping: Ping {
                interval: Option::read(options, "auto_ping_interval"),
                timeout: Option::read(options, "auto_ping_timeout"),
                ..Ping::NONE
            },
        }
    }

    /// The methods of a listener. Warns of `tls` without client certificates.
    pub(super) fn auth_at(&mut self, object: View<'_>, place: Place<'_>) -> Arc<Methods> {
        let methods = self.auth(object, place.realms);
        if methods.tls.is_some() && !place.sees_certificates {
            let message = "\"tls\" needs \"ca_certificates\" in the endpoint's \"tls\": without them no client \
                           shows a certificate, and whoever comes by it will be refused";
            self.warn(object.section("auth"), "tls", message);
        }
        Arc::new(methods)
    }

    pub(super) fn websocket(&mut self, object: View<'_>, place: Place<'_>) -> WebSocket {
        WebSocket {
            url: object.text("url").map(str::to_owned),
            serializers: serializers(object),
            auth: self.auth_at(object, place),
            cookie: self.cookie(object),
            mqtt: self.mqtt_over(object, place),
            options: self.websocket_options(object.section("options"), place),
        }
    }

    fn mqtt_over(&mut self, object: View<'_>, place: Place<'_>) -> Option<Box<Mqtt>> {
        // Only a transport's own WebSocket has the key.
        let mqtt = object.has("mqtt").then(|| object.object("mqtt")).flatten();
        mqtt.map(|mqtt| Box::new(self.mqtt(mqtt, place)))
    }

    /// A WebSocket that only forwards messages, without authentication.
    pub(super) fn websocket_without_sessions(
        &mut self,
        object: View<'_>,
        place: Place<'_>,
    ) -> WebSocket {
        WebSocket {
            url: object.text("url").map(str::to_owned),
            serializers: Vec::new(),
            auth: Arc::default(),
            cookie: None,
            mqtt: None,
            options: self.websocket_options(object.section("options"), place),
        }
    }

    pub(super) fn websocket_options(
        &mut self,
        options: View<'_>,
        place: Place<'_>,
    ) -> WebSocketOptions {
        let allowed_origins = allowed(options, "allowed_origins", place.is_loopback);
        let compression = options.section("compression");
        WebSocketOptions {
            // Crossbar.io's default, unless only pages of this machine are allowed.
            allow_null_origin: match options.given("allow_null_origin").is_some() {
                true => options.boolean("allow_null_origin"),
                false => allowed_origins != Allowed::Loopback,
            },
            allowed_origins,
            message_bytes_max: self.message_bytes_max(options),
            ping: Ping {
                interval: Option::read(options, "auto_ping_interval"),
                timeout: Option::read(options, "auto_ping_timeout"),
                payload_bytes: self.ping_bytes(options),
                restart_on_any_traffic: options.boolean("auto_ping_restart_on_any_traffic"),
            },
            compression: compression.object("deflate").map(Deflate::read),
            ..WebSocketOptions::read(options)
        }
    }

    /// The payload size of pings. The payload tells a ping from others.
    fn ping_bytes(&mut self, options: View<'_>) -> usize {
        const LEAST: usize = 12;
        let bytes = bound(options, "auto_ping_size");
        if bytes < LEAST {
            let message =
                format!("{bytes} bytes do not tell one ping from another; {LEAST} are sent");
            self.warn(options, "auto_ping_size", message);
        }
        bytes.max(LEAST)
    }

    /// The maximum size of a message. Warns if no queue can hold one of that size.
    pub(super) fn message_bytes_max(&mut self, options: View<'_>) -> usize {
        const OTHERWISE: usize = 16 << 20;
        let queue_bytes_max = self.queue_bytes_max;
        let Some(max) = options.integer("max_message_size").map(size) else {
            return OTHERWISE.min(queue_bytes_max);
        };
        if max > queue_bytes_max {
            let message = format!(
                "messages of {max} bytes are taken here, but a queue holds only \
                 {queue_bytes_max} (\"queue_bytes_max\" in \"limits\")"
            );
            self.warn(options, "max_message_size", message);
        }
        max
    }
}

/// The listed roles by realm.
fn admits(transport: View<'_>) -> Admits {
    let Json::Object(realms) = transport.json("admits") else {
        return Admits::new();
    };
    let roles = |roles: &Json| {
        let roles = roles.as_array().into_iter().flatten();
        roles.filter_map(Json::as_str).map(str::to_owned).collect()
    };
    realms
        .iter()
        .map(|(realm, named)| (realm.clone(), roles(named)))
        .collect()
}

/// The listed patterns; without them loopback names, or all.
pub(super) fn allowed(object: View<'_>, key: &str, otherwise_loopback: bool) -> Allowed {
    match (object.given(key), otherwise_loopback) {
        (Some(_), _) => Allowed::Matching(object.texts(key).map(str::to_owned).collect()),
        (None, true) => Allowed::Loopback,
        (None, false) => Allowed::All,
    }
}

/// Whether a WebSocket has `allowed_origins`.
fn says_origins(kind: &TransportKind) -> bool {
    let says =
        |websocket: &WebSocket| matches!(websocket.options.allowed_origins, Allowed::Matching(_));
    kind.websockets().into_iter().any(says)
}

/// The listed pages; without a list all of them, or none.
pub(super) fn pages(object: View<'_>, otherwise_all: bool) -> Vec<Page> {
    if otherwise_all && object.given("pages").is_none() {
        return Page::WORDS.iter().map(|(_, page)| *page).collect();
    }
    object.texts("pages").filter_map(Page::of).collect()
}

pub(super) fn serializers(object: View<'_>) -> Vec<Serializer> {
    let named = |name: &str| Serializer::from_name(name);
    if object.given("serializers").is_none() {
        return all_serializers();
    }
    object.texts("serializers").filter_map(named).collect()
}

pub(super) fn all_serializers() -> Vec<Serializer> {
    let words = SERIALIZERS.words.iter();
    words
        .filter_map(|name| Serializer::from_name(name))
        .collect()
}

fn testee(transport: View<'_>, kind: TesteeKind) -> TransportKind {
    TransportKind::Testee(Testee {
        kind,
        debug: transport.boolean("debug"),
    })
}

fn websocket_testee(transport: View<'_>) -> WebSocketTestee {
    let options = transport.section("options");
    let compression = options.section("compression");
    WebSocketTestee {
        url: transport.text("url").map(str::to_owned),
        compression: compression.object("deflate").map(Deflate::read),
        ..WebSocketTestee::read(options)
    }
}
