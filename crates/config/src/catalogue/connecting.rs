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
    "Where it connects to.",
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
            "The serializer that it speaks.",
        )
        .required(),
        key(
            "options",
            Kind::Object(&CONNECTING_RAWSOCKET_OPTIONS),
            "How RawSocket is spoken.",
        )
        .otherwise("all of their defaults"),
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
        "The largest message that it takes, in bytes.",
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
            "The URL that it asks for.",
        )
        .required()
        .environment(),
        key(
            "serializers",
            list_not_empty(&SERIALIZER),
            "The serializers that it asks for first, in order. A preference, no demand: \
             the others are asked for after them.",
        )
        .otherwise("all of them"),
        key(
            "options",
            Kind::Object(&WEBSOCKET_CLIENT_OPTIONS),
            "How WebSocket is spoken.",
        )
        .otherwise("all of their defaults"),
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
    "How long one attempt to connect may take, in seconds.",
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
            "The router's host: a name or an IP address.",
        )
        .required()
        .environment(),
        key("port", integer(1, 65_535), "The router's port.")
            .required()
            .environment(),
        key(
            "version",
            Kind::Numbers {
                path: "",
                numbers: &[4, 6],
            },
            "The version of IP: 4 or 6.",
        )
        .otherwise("what the host's name resolves to"),
        TIMEOUT,
        key("tls", Kind::Object(&CONNECTING_TLS), "TLS to the router.").otherwise("none"),
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
            "The router's socket; a relative path begins at the node's directory. `$NAME` and `${NAME}` are replaced \
             anywhere in it.",
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
            "The name that the router's certificate must have.",
        )
        .required(),
        key(
            "ca_certificates",
            list(&Kind::Text(Rule::Path)),
            "The files of the certificates that are trusted (PEM); relative paths begin \
             at the node's directory, as for all of these.",
        )
        .otherwise("those that the system trusts"),
        key(
            "certificate",
            Kind::Text(Rule::Path),
            "The file of the component's own certificate (PEM).",
        )
        .otherwise("none"),
        key(
            "key",
            Kind::Text(Rule::Path),
            "The file of its private key (PEM).",
        )
        .otherwise("none"),
    ],
};
