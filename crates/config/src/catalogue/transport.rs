//! Transports, endpoints and authentication: every key that is taken. Long and flat.

use super::options::{RAWSOCKET_OPTIONS, WEBSOCKET_OPTIONS, WEBSOCKET_TESTEE_OPTIONS};
use super::{
    Fallback, Key, Kind, NO, Rule, TYPE, Table, Tagged, Words, integer, key, list, list_not_empty,
};

pub(super) static TRANSPORT: Tagged = Tagged {
    path: "transports[].type",
    name: "a transport",
    variants: &[
        ("rawsocket", &RAWSOCKET_TRANSPORT),
        ("stream.testee", &STREAM_TESTEE_TRANSPORT),
        ("universal", &UNIVERSAL_TRANSPORT),
        ("websocket", &WEBSOCKET_TRANSPORT),
        ("websocket.testee", &WEBSOCKET_TESTEE_TRANSPORT),
    ],
};

const TRANSPORT_ID: Key = key(
    "id",
    Kind::Text(Rule::Id),
    "The transport's id; no two transports of the node share one.",
)
.otherwise("`transport001`, `transport002`, …");
const ENDPOINT_KEY: Key = key("endpoint", Kind::Tagged(&ENDPOINT), "Where it listens.").required();
const MAX_CONNECTIONS: Key = key(
    "max_connections",
    integer(1, u32::MAX as i64),
    "How many connections it holds at a time; one more is closed at once.",
)
.otherwise("bounded by `limits.sessions_max`");
const PAGES_KEY: Key = key(
    "pages",
    list(&PAGE),
    "The pages that plain HTTP requests on its port can see: `health` at \
             `/health`, `metrics` at `/metrics`, `status` at `/`.",
)
.otherwise("none")
.own();
const SERIALIZERS_KEY: Key = key(
    "serializers",
    list_not_empty(&SERIALIZER),
    "The serializers that clients may choose; over WebSocket each also in its \
             batched form.",
)
.otherwise("all of them");
const AUTH_KEY: Key = key(
    "auth",
    Kind::Object(&AUTH),
    "How sessions say who they are. An empty object counts as none.",
)
.otherwise("everybody is anonymous, with role `anonymous`");
const DEBUG: Key = key("debug", Kind::Boolean, "").inert("the log level says what is logged");

pub(super) static RAWSOCKET_TRANSPORT: Table = Table {
    path: "transports[rawsocket]",
    name: "a RawSocket transport",
    keys: &[
        TYPE,
        TRANSPORT_ID,
        ENDPOINT_KEY,
        MAX_CONNECTIONS,
        SERIALIZERS_KEY,
        AUTH_KEY,
        key(
            "options",
            Kind::Object(&RAWSOCKET_OPTIONS),
            "How RawSocket is spoken.",
        )
        .otherwise("all of their defaults"),
        DEBUG,
    ],
};

pub(super) static WEBSOCKET_TRANSPORT: Table = Table {
    path: "transports[websocket]",
    name: "a WebSocket transport",
    keys: &[
        TYPE,
        TRANSPORT_ID,
        ENDPOINT_KEY,
        MAX_CONNECTIONS,
        URL,
        SERIALIZERS_KEY,
        AUTH_KEY,
        key(
            "options",
            Kind::Object(&WEBSOCKET_OPTIONS),
            "How WebSocket is spoken.",
        )
        .otherwise("all of their defaults"),
        PAGES_KEY,
        DEBUG,
    ],
};

pub(super) static STREAM_TESTEE_TRANSPORT: Table = Table {
    path: "transports[stream.testee]",
    name: "a stream testee",
    keys: &[
        TYPE,
        TRANSPORT_ID,
        ENDPOINT_KEY,
        MAX_CONNECTIONS.own(),
        TESTEE_DEBUG,
    ],
};

pub(super) static WEBSOCKET_TESTEE_TRANSPORT: Table = Table {
    path: "transports[websocket.testee]",
    name: "a WebSocket testee",
    keys: &[
        TYPE,
        TRANSPORT_ID,
        ENDPOINT_KEY,
        MAX_CONNECTIONS.own(),
        URL,
        key(
            "options",
            Kind::Object(&WEBSOCKET_TESTEE_OPTIONS),
            "How WebSocket is spoken.",
        )
        .otherwise("all of their defaults"),
        TESTEE_DEBUG,
    ],
};

const TESTEE_DEBUG: Key = key(
    "debug",
    Kind::Boolean,
    "Whether the log names each connection, when it begins and why it ends.",
)
.fallback(NO);

const URL: Key = key(
    "url",
    Kind::Text(Rule::WebSocketUrl),
    "The address that people are told, where it is not the endpoint's own \
             (behind a proxy).",
)
.otherwise("made from the endpoint");

pub(super) static UNIVERSAL_TRANSPORT: Table = Table {
    path: "transports[universal]",
    name: "a universal transport",
    keys: &[
        TYPE,
        TRANSPORT_ID,
        ENDPOINT_KEY,
        MAX_CONNECTIONS,
        key(
            "rawsocket",
            Kind::Object(&UNIVERSAL_RAWSOCKET),
            "RawSocket on the port.",
        )
        .otherwise("not spoken"),
        key(
            "websocket",
            Kind::Map {
                keys: Rule::WebPath,
                of: &Kind::Object(&UNIVERSAL_WEBSOCKET),
            },
            "WebSocket on the port, by path: `ws` stands for `/ws`.",
        )
        .otherwise("not spoken"),
        PAGES_KEY,
    ],
};

pub(super) static UNIVERSAL_RAWSOCKET: Table = Table {
    path: "transports[universal].rawsocket",
    name: "RawSocket in a universal transport",
    keys: &[
        key(
            "type",
            Kind::OneOf(&Words {
                path: "",
                words: &["rawsocket"],
            }),
            "May be left out.",
        )
        .fallback(Fallback::Text("rawsocket")),
        SERIALIZERS_KEY,
        AUTH_KEY,
        key(
            "options",
            Kind::Object(&RAWSOCKET_OPTIONS),
            "How RawSocket is spoken.",
        )
        .otherwise("all of their defaults"),
        DEBUG,
    ],
};

pub(super) static UNIVERSAL_WEBSOCKET: Table = Table {
    path: "transports[universal].websocket{}",
    name: "WebSocket in a universal transport",
    keys: &[
        key(
            "type",
            Kind::OneOf(&Words {
                path: "",
                words: &["websocket"],
            }),
            "May be left out.",
        )
        .fallback(Fallback::Text("websocket")),
        URL,
        SERIALIZERS_KEY,
        AUTH_KEY,
        key(
            "options",
            Kind::Object(&WEBSOCKET_OPTIONS),
            "How WebSocket is spoken.",
        )
        .otherwise("all of their defaults"),
        DEBUG,
    ],
};

static PAGE: Kind = Kind::OneOf(&PAGES);
static SERIALIZER: Kind = Kind::OneOf(&SERIALIZERS);

pub(crate) static SERIALIZERS: Words = Words {
    path: "serializers[]",
    words: &["cbor", "msgpack", "json"],
};

pub(crate) static PAGES: Words = Words {
    path: "pages[]",
    words: &["health", "metrics", "status"],
};

pub(super) static AUTH: Table = Table {
    path: "auth",
    name: "a transport's auth",
    keys: &[key(
        "anonymous",
        Kind::Tagged(&ANONYMOUS),
        "Sessions that prove nothing.",
    )
    .otherwise("taken, with its defaults")],
};

pub(super) static ANONYMOUS: Tagged = Tagged {
    path: "auth.anonymous.type",
    name: "anonymous authentication",
    variants: &[("static", &ANONYMOUS_STATIC)],
};

pub(super) static ANONYMOUS_STATIC: Table = Table {
    path: "auth.anonymous[static]",
    name: "anonymous authentication",
    keys: &[
        TYPE,
        key(
            "role",
            Kind::Text(Rule::NotEmpty),
            "The role that such sessions get.",
        )
        .fallback(Fallback::Text("anonymous")),
        key(
            "realm",
            Kind::Text(Rule::RealmName),
            "The only realm that they may join.",
        )
        .otherwise("the one they ask for"),
        key(
            "authid",
            Kind::Text(Rule::NotEmpty),
            "The authid that they all get.",
        )
        .otherwise("a fresh one for each"),
    ],
};

pub(super) static ENDPOINT: Tagged = Tagged {
    path: "endpoint.type",
    name: "an endpoint",
    variants: &[("tcp", &TCP_ENDPOINT), ("unix", &UNIX_ENDPOINT)],
};

const BACKLOG: Key = key(
    "backlog",
    integer(1, 65_535),
    "How many connections may wait to be accepted.",
)
.fallback(Fallback::Integer(1_024));

pub(super) static TCP_ENDPOINT: Table = Table {
    path: "endpoint[tcp]",
    name: "a TCP endpoint",
    keys: &[
        TYPE,
        key(
            "port",
            integer(0, 65_535),
            "The port; 0 takes any that is free.",
        )
        .required()
        .environment(),
        key(
            "interface",
            Kind::Text(Rule::Interface),
            "The address to listen on.",
        )
        .otherwise("all interfaces")
        .environment(),
        key(
            "version",
            Kind::Numbers {
                path: "",
                numbers: &[4, 6],
            },
            "The version of IP: 4 or 6.",
        )
        .otherwise("the interface's, else 4"),
        BACKLOG,
        key(
            "shared",
            Kind::Boolean,
            "Whether other processes may listen on the port too (`SO_REUSEPORT`).",
        )
        .fallback(NO),
        key(
            "user_timeout",
            integer(0, 65_535),
            "How long sent octets may stay unacknowledged before the connection is \
             given up, in milliseconds (`TCP_USER_TIMEOUT`); 0: the system decides.",
        )
        .fallback(Fallback::Integer(30_000)),
        key("tls", Kind::Object(&TLS), "TLS on the port.").otherwise("none"),
    ],
};

pub(super) static UNIX_ENDPOINT: Table = Table {
    path: "endpoint[unix]",
    name: "a Unix endpoint",
    keys: &[
        TYPE,
        key(
            "path",
            Kind::Text(Rule::NotEmpty),
            "The socket's file; a relative path begins at the node's directory.",
        )
        .required()
        .environment(),
        BACKLOG,
    ],
};

pub(super) static TLS: Table = Table {
    path: "endpoint[tcp].tls",
    name: "a TLS endpoint",
    keys: &[
        key(
            "key",
            Kind::Text(Rule::NotEmpty),
            "The file of the private key (PEM); a relative path begins at the node's \
             directory, as for all of these.",
        )
        .required()
        .environment(),
        key(
            "certificate",
            Kind::Text(Rule::NotEmpty),
            "The file of the certificate (PEM).",
        )
        .required()
        .environment(),
        key(
            "chain_certificates",
            list(&Kind::Text(Rule::NotEmpty)),
            "The files of the certificates between it and the root (PEM), in order.",
        )
        .otherwise("none"),
        key("dhparam", Kind::Text(Rule::Any), "")
            .inert("keys are agreed over elliptic curves only"),
        key("ciphers", Kind::Text(Rule::Any), "").inert(
            "only forward-secret, authenticated cipher suites are offered (TLS 1.3, and \
             of TLS 1.2 ECDHE with AES-GCM or ChaCha20)",
        ),
    ],
};
