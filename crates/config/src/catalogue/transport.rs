//! Keys of transports.

use super::amqp::{AMQP_MANAGEMENT_TRANSPORT, AMQP_PROMETHEUS_TRANSPORT, AMQP_TRANSPORT};
use super::auth::AUTH;
use super::cookie::COOKIE;
use super::endpoint::ENDPOINT;
use super::form::{
    Kind, OFF, Rule, TYPE, Words, integer, list, list_not_empty, map, object, one_of, tagged, text,
};
use super::mqtt::MQTT_OPTIONS;
use super::options::{RAWSOCKET_OPTIONS, WEBSOCKET_OPTIONS};
use super::other_options::WEBSOCKET_TESTEE_OPTIONS;
use super::session_limits::LISTENER_LIMITS_KEY;
use super::table::tables;
use super::web::{UNIVERSAL_WEB, WEB_TRANSPORT};

tables! {
    pub(crate) tagged TRANSPORT("transports[].type", "a transport") {
        "amqp" => AMQP_TRANSPORT,
        "amqp.management" => AMQP_MANAGEMENT_TRANSPORT,
        "amqp.prometheus" => AMQP_PROMETHEUS_TRANSPORT,
        "mqtt" => MQTT_TRANSPORT,
        "rawsocket" => RAWSOCKET_TRANSPORT,
        "stream.testee" => STREAM_TESTEE_TRANSPORT,
        "universal" => UNIVERSAL_TRANSPORT,
        "web" => WEB_TRANSPORT,
        "websocket" => WEBSOCKET_TRANSPORT,
        "websocket.testee" => WEBSOCKET_TESTEE_TRANSPORT,
    }

    pub(super) const TRANSPORT_ID = "id": text(Rule::Id).otherwise("`transport1`, `transport2`, … by position"),
        "Id of the transport, unique within the worker.";
    const ENDPOINT_KEY = "endpoint": tagged(&ENDPOINT).required(), "Address that the listener binds.";
    pub(super) const MAX_CONNECTIONS = "max_connections": integer(1, u32::MAX as i64)
        .otherwise("bounded by `limits.sessions_max`"),
        "Maximum number of open connections of the listener. Another connection is closed at once.";
    pub(super) const ADMITS = "admits": map(Rule::RealmName, &list(&text(Rule::NotEmpty)))
        .otherwise("all of them").own(),
        "Realms, each with the roles, that sessions of this transport may join. A session of another role is \
         sent ABORT with `wamp.error.no_such_role`, of another realm with `wamp.error.no_such_realm`. A proxy's \
         `routes` become this key.";
    pub(super) const PAGES_KEY = "pages": list(&PAGE).optional().own(),
        "Pages served to plain HTTP requests on the port: `health` at `/health`, `metrics` at `/metrics`, \
         `status` at `/`.";
    pub(super) const ALLOWED_HOSTS = "allowed_hosts": list_not_empty(&text(Rule::NotEmpty))
        .otherwise(
            "loopback names (`localhost`, `*.localhost`, 127.0.0.0/8, `::1`) at a loopback address without \
             `allowed_origins`; else any"
        ).own(),
        "Host names accepted in the `Host` header of HTTP requests. `*` matches anything; a name without a port \
         matches any port. The check rejects pages of other sites whose name resolves to this machine.";
    pub(super) const SERIALIZERS_KEY = "serializers": list_not_empty(&SERIALIZER).otherwise("all of them"),
        "Serializers that clients may choose; over WebSocket each also in its batched form.";
    pub(super) const AUTH_KEY = "auth": object(&AUTH).otherwise("`anonymous`, with the role `anonymous`"),
        "Authentication methods of the transport. An empty object counts as none.";
    pub(super) const COOKIE_KEY = "cookie": object(&COOKIE).optional().restart(),
        "Cookie that identifies returning browsers (`auth.cookie`).";
    const MQTT_KEY = "mqtt": object(&MQTT_BESIDE).otherwise("disabled").own(),
        "MQTT over the WebSocket, for clients that ask for the subprotocol `mqtt` or `mqttv3.1`.";
    pub(super) const DEBUG = "debug": Kind::Boolean.inert("the log level says what is logged");

    pub(super) static RAWSOCKET_TRANSPORT("transports[rawsocket]", "a RawSocket transport") {
        ..TYPE, TRANSPORT_ID, ENDPOINT_KEY, MAX_CONNECTIONS, LISTENER_LIMITS_KEY, ADMITS, SERIALIZERS_KEY;
        ..AUTH_KEY;
        "options" = object(&RAWSOCKET_OPTIONS).otherwise("the defaults"), "Options of the RawSocket protocol.";
        ..DEBUG;
    }

    pub(super) static WEBSOCKET_TRANSPORT("transports[websocket]", "a WebSocket transport") {
        ..TYPE, TRANSPORT_ID, ENDPOINT_KEY, MAX_CONNECTIONS, LISTENER_LIMITS_KEY, ADMITS, URL, SERIALIZERS_KEY;
        ..AUTH_KEY, COOKIE_KEY;
        "options" = object(&WEBSOCKET_OPTIONS).otherwise("the defaults"), "Options of the WebSocket protocol.";
        ..MQTT_KEY;
        ..PAGES_KEY, ALLOWED_HOSTS, DEBUG;
    }

    pub(super) static STREAM_TESTEE_TRANSPORT("transports[stream.testee]", "a stream testee") {
        ..TYPE, TRANSPORT_ID, ENDPOINT_KEY.restart(), MAX_CONNECTIONS.own().restart(), TESTEE_DEBUG.restart();
    }

    pub(super) static WEBSOCKET_TESTEE_TRANSPORT("transports[websocket.testee]", "a WebSocket testee") =
        TESTEE_TRANSPORT_KEYS;

    pub(super) const TESTEE_TRANSPORT_KEYS {
        ..TYPE, TRANSPORT_ID, ENDPOINT_KEY.restart(), MAX_CONNECTIONS.own().restart(), URL.restart();
        "options" = object(&WEBSOCKET_TESTEE_OPTIONS).otherwise("the defaults").restart(),
            "Options of the WebSocket protocol.";
        ..TESTEE_DEBUG.restart();
    }

    const TESTEE_DEBUG = "debug": OFF, "Logs the start and the end of each connection, with the reason.";
    pub(super) const URL = "url": text(Rule::WebSocketUrl).otherwise("made from the endpoint"),
        "Public address, if it is not the endpoint's own (behind a proxy).";

    pub(super) static UNIVERSAL_TRANSPORT("transports[universal]", "a universal transport") {
        ..TYPE, TRANSPORT_ID, ENDPOINT_KEY, MAX_CONNECTIONS, LISTENER_LIMITS_KEY, ADMITS;
        "mqtt" = object(&MQTT_BESIDE).otherwise("disabled"), "MQTT on the port, told apart by its first byte.";
        "rawsocket" = object(&UNIVERSAL_RAWSOCKET).otherwise("disabled"), "RawSocket on the port.";
        "websocket" = map(Rule::WebPath, &object(&UNIVERSAL_WEBSOCKET)).otherwise("disabled"),
            "WebSocket on the port, by path: `ws` stands for `/ws`.";
        "web" = object(&UNIVERSAL_WEB).optional(), "Web services on the port, at paths without a WebSocket.";
        ..PAGES_KEY, ALLOWED_HOSTS;
    }

    pub(super) static MQTT_TRANSPORT("transports[mqtt]", "an MQTT transport") {
        ..TYPE, TRANSPORT_ID, ENDPOINT_KEY, MAX_CONNECTIONS, LISTENER_LIMITS_KEY, ADMITS;
        "options" = object(&MQTT_OPTIONS).required(), "Options of MQTT.";
    }

    pub(super) static MQTT_BESIDE("transports[universal].mqtt", "MQTT beside other protocols") {
        "type" = one_of(&Words { path: "", words: &["mqtt"] }).or_text("mqtt"),
            "Type of the object; may be left out.";
        "options" = object(&MQTT_OPTIONS).required(), "Options of MQTT.";
    }

    pub(super) static UNIVERSAL_RAWSOCKET("transports[universal].rawsocket", "RawSocket in a universal transport") {
        "type" = one_of(&Words { path: "", words: &["rawsocket"] }).or_text("rawsocket"),
            "Type of the object; may be left out.";
        ..SERIALIZERS_KEY, AUTH_KEY;
        "options" = object(&RAWSOCKET_OPTIONS).otherwise("the defaults"), "Options of the RawSocket protocol.";
        ..DEBUG;
    }

    pub(super) static UNIVERSAL_WEBSOCKET("transports[universal].websocket{}", "WebSocket in a universal transport") {
        "type" = one_of(&Words { path: "", words: &["websocket"] }).or_text("websocket"),
            "Type of the object; may be left out.";
        ..URL, SERIALIZERS_KEY, AUTH_KEY, COOKIE_KEY;
        "options" = object(&WEBSOCKET_OPTIONS).otherwise("the defaults"), "Options of the WebSocket protocol.";
        ..MQTT_KEY;
        ..DEBUG;
    }
}

static PAGE: Kind = Kind::OneOf(&PAGES);
pub(super) static SERIALIZER: Kind = Kind::OneOf(&SERIALIZERS);

tables! {
    pub(crate) words SERIALIZERS("serializers[]") { "cbor", "msgpack", "json" }

    /// An HTTP page that the router answers with itself.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[non_exhaustive]
    pub enum Page = pub(crate) words PAGES("pages[]") {
        /// `/health`
        "health" => Health,
        /// `/metrics`, in Prometheus form.
        "metrics" => Metrics,
        /// `/`, for people.
        "status" => Status,
    }
}
