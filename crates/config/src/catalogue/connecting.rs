//! How components connect to routers: every key that is taken. Long and flat.

use super::form::{
    Fallback, Key, Kind, Rule, TYPE, Table, Tagged, integer, key, list, list_not_empty,
};
use super::other_options::WEBSOCKET_CLIENT_OPTIONS;
use super::transport::{SERIALIZER, SERIALIZERS};

pub(super) static CONNECTING_TRANSPORT: Tagged = Tagged {
    path: "components[].transport.type",
    name: "a component's transport",
    variants: &[
        ("rawsocket", &CONNECTING_RAWSOCKET),
        ("websocket", &CONNECTING_WEBSOCKET),
    ],
};

const ID: Key = key("id", Kind::Text(Rule::Id), "").inert("a component has one transport");
const ENDPOINT_KEY: Key = key(
    "endpoint",
    Kind::Tagged(&CONNECTING_ENDPOINT),
    "Address to connect to.",
);
const DEBUG: Key = key("debug", Kind::Boolean, "").inert("the log level says what is logged");

static CONNECTING_RAWSOCKET: Table = Table {
    path: "components[].transport[rawsocket]",
    name: "a component's RawSocket transport",
    keys: &[
        TYPE,
        ID,
        ENDPOINT_KEY.required(),
        key(
            "serializer",
            Kind::OneOf(&SERIALIZERS),
            "Serializer of the connection.",
        )
        .required(),
        key(
            "options",
            Kind::Object(&CONNECTING_RAWSOCKET_OPTIONS),
            "Options of the RawSocket protocol.",
        )
        .otherwise("the defaults"),
        key("url", Kind::Text(Rule::Any), "").inert("the endpoint says where it connects to"),
        DEBUG,
    ],
};

static CONNECTING_RAWSOCKET_OPTIONS: Table = Table {
    path: "components[].transport[rawsocket].options",
    name: "RawSocket options of a component",
    keys: &[key(
        "max_message_size",
        integer(512, 16 << 20),
        "Maximum size of a received message, in bytes.",
    )
    .fallback(Fallback::Integer(16 << 20))],
};

static CONNECTING_WEBSOCKET: Table = Table {
    path: "components[].transport[websocket]",
    name: "a component's WebSocket transport",
    keys: &[
        TYPE,
        ID,
        ENDPOINT_KEY.otherwise("made from the URL"),
        key(
            "url",
            Kind::Text(Rule::WebSocketUrl),
            "URL of the WebSocket.",
        )
        .required()
        .environment(),
        key(
            "serializers",
            list_not_empty(&SERIALIZER),
            "Preferred serializers, in order. The other serializers are offered after them.",
        )
        .otherwise("all of them"),
        key(
            "options",
            Kind::Object(&WEBSOCKET_CLIENT_OPTIONS),
            "Options of the WebSocket protocol.",
        )
        .otherwise("the defaults"),
        DEBUG,
    ],
};

pub(super) static CONNECTING_ENDPOINT: Tagged = Tagged {
    path: "components[].transport.endpoint.type",
    name: "a component's endpoint",
    variants: &[("tcp", &CONNECTING_TCP), ("unix", &CONNECTING_UNIX)],
};

const TIMEOUT: Key = key(
    "timeout",
    integer(1, 600),
    "Maximum time for one connection attempt, in seconds.",
)
.fallback(Fallback::Integer(10));

static CONNECTING_TCP: Table = Table {
    path: "components[].transport.endpoint[tcp]",
    name: "a component's TCP endpoint",
    keys: &[
        TYPE,
        key(
            "host",
            Kind::Text(Rule::Host),
            "Host of the router: a name or an IP address.",
        )
        .required()
        .environment(),
        key("port", integer(1, 65_535), "Port of the router.")
            .required()
            .environment(),
        key(
            "version",
            Kind::Numbers {
                path: "",
                numbers: &[4, 6],
            },
            "IP version: 4 or 6.",
        )
        .otherwise("what the host's name resolves to"),
        TIMEOUT,
        key(
            "tls",
            Kind::Object(&CONNECTING_TLS),
            "TLS for the connection to the router.",
        )
        .otherwise("none"),
    ],
};

static CONNECTING_UNIX: Table = Table {
    path: "components[].transport.endpoint[unix]",
    name: "a component's Unix endpoint",
    keys: &[
        TYPE,
        key(
            "path",
            Kind::Text(Rule::SocketPath),
            "Path of the router's socket. A relative path starts at the node's directory. `$NAME` and `${NAME}` are \
             replaced anywhere in it.",
        )
        .required()
        .environment(),
        TIMEOUT,
    ],
};

static CONNECTING_TLS: Table = Table {
    path: "components[].transport.endpoint[tcp].tls",
    name: "a component's TLS",
    keys: &[
        key(
            "hostname",
            Kind::Text(Rule::Host),
            "Host name that the router's certificate must contain.",
        )
        .required(),
        key(
            "ca_certificates",
            list(&Kind::Text(Rule::Path)),
            "PEM files of trusted certificate authorities. Relative paths of these keys start at the node's \
             directory.",
        )
        .otherwise("those that the system trusts"),
        key(
            "certificate",
            Kind::Text(Rule::Path),
            "PEM file of the component's client certificate.",
        )
        .otherwise("none"),
        key(
            "key",
            Kind::Text(Rule::Path),
            "PEM file of the component's private key.",
        )
        .otherwise("none"),
    ],
};
