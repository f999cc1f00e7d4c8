//! Keys of the transports of components.

use super::form::{Kind, Rule, TYPE, integer, list, list_not_empty, object, one_of, tagged, text};
use super::other_options::WEBSOCKET_CLIENT_OPTIONS;
use super::table::tables;
use super::transport::{SERIALIZER, SERIALIZERS};

tables! {
    pub(super) tagged CONNECTING_TRANSPORT("components[].transport.type", "a component's transport") {
        "rawsocket" => CONNECTING_RAWSOCKET, "websocket" => CONNECTING_WEBSOCKET
    }

    const ID = "id": text(Rule::Id).inert("a component has one transport");
    const ENDPOINT_KEY = "endpoint": tagged(&CONNECTING_ENDPOINT).optional(), "Address to connect to.";
    const DEBUG = "debug": Kind::Boolean.inert("the log level says what is logged");

    static CONNECTING_RAWSOCKET("components[].transport[rawsocket]", "a component's RawSocket transport") {
        ..TYPE, ID, ENDPOINT_KEY.required();
        "serializer" = one_of(&SERIALIZERS).required(), "Serializer of the connection.";
        "options" = object(&CONNECTING_RAWSOCKET_OPTIONS).otherwise("the defaults"),
            "Options of the RawSocket protocol.";
        "url" = text(Rule::Any).inert("the endpoint says where it connects to");
        ..DEBUG;
    }

    static CONNECTING_RAWSOCKET_OPTIONS(
        "components[].transport[rawsocket].options", "RawSocket options of a component"
    ) {
        "max_message_size" = integer(512, 16 << 20).or(16 << 20), "Maximum size of a received message, in bytes.";
    }

    static CONNECTING_WEBSOCKET("components[].transport[websocket]", "a component's WebSocket transport") {
        ..TYPE, ID, ENDPOINT_KEY.otherwise("made from the URL");
        "url" = text(Rule::WebSocketUrl).required().environment(), "URL of the WebSocket.";
        "serializers" = list_not_empty(&SERIALIZER).otherwise("all of them"),
            "Preferred serializers, in order. The other serializers are offered after them.";
        "options" = object(&WEBSOCKET_CLIENT_OPTIONS).otherwise("the defaults"), "Options of the WebSocket protocol.";
        ..DEBUG;
    }

    pub(super) tagged CONNECTING_ENDPOINT("components[].transport.endpoint.type", "a component's endpoint") {
        "tcp" => CONNECTING_TCP, "unix" => CONNECTING_UNIX
    }

    const TIMEOUT = "timeout": integer(1, 600).or(10), "Maximum time for one connection attempt, in seconds.";

    static CONNECTING_TCP("components[].transport.endpoint[tcp]", "a component's TCP endpoint") {
        ..TYPE;
        "host" = text(Rule::Host).required().environment(), "Host of the router: a name or an IP address.";
        "port" = integer(1, 65_535).required().environment(), "Port of the router.";
        "version" = Kind::Numbers { path: "", numbers: &[4, 6] }.otherwise("what the host's name resolves to"),
            "IP version: 4 or 6.";
        ..TIMEOUT;
        "tls" = object(&CONNECTING_TLS).optional(), "TLS for the connection to the router.";
    }

    static CONNECTING_UNIX("components[].transport.endpoint[unix]", "a component's Unix endpoint") {
        ..TYPE;
        "path" = text(Rule::SocketPath).required().environment(),
            "Path of the router's socket. A relative path starts at the node's directory. `$NAME` and `${NAME}` are \
             replaced anywhere in it.";
        ..TIMEOUT;
    }

    static CONNECTING_TLS("components[].transport.endpoint[tcp].tls", "a component's TLS") {
        "hostname" = text(Rule::Host).required(), "Host name that the router's certificate must contain.";
        "ca_certificates" = list(&text(Rule::Path)).otherwise("those that the system trusts"),
            "PEM files of trusted certificate authorities. Relative paths of these keys start at the node's \
             directory.";
        "certificate" = text(Rule::Path).optional(), "PEM file of the component's client certificate.";
        "key" = text(Rule::Path).optional(), "PEM file of the component's private key.";
    }
}
