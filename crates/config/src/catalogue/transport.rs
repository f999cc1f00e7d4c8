//! Transports: every key that is taken. Long and flat.

use super::amqp::AMQP_TRANSPORT;
use super::auth::AUTH;
use super::cookie::COOKIE;
use super::endpoint::ENDPOINT;
use super::form::{
    Fallback, Key, Kind, NO, Rule, TYPE, Table, Tagged, Words, integer, key, list, list_not_empty,
};
use super::options::{RAWSOCKET_OPTIONS, WEBSOCKET_OPTIONS};
use super::other_options::WEBSOCKET_TESTEE_OPTIONS;
use super::session_limits::LISTENER_LIMITS_KEY;
use super::web::{UNIVERSAL_WEB, WEB_TRANSPORT};

pub(crate) static TRANSPORT: Tagged = Tagged {
    path: "transports[].type",
    name: "a transport",
    variants: &[
        ("amqp", &AMQP_TRANSPORT),
        ("rawsocket", &RAWSOCKET_TRANSPORT),
        ("stream.testee", &STREAM_TESTEE_TRANSPORT),
        ("universal", &UNIVERSAL_TRANSPORT),
        ("web", &WEB_TRANSPORT),
        ("websocket", &WEBSOCKET_TRANSPORT),
        ("websocket.testee", &WEBSOCKET_TESTEE_TRANSPORT),
    ],
};

pub(super) const TRANSPORT_ID: Key = key(
    "id",
    Kind::Text(Rule::Id),
    "Id of the transport, unique within the worker.",
)
.otherwise("`transport1`, `transport2`, … by position");
const ENDPOINT_KEY: Key = key(
    "endpoint",
    Kind::Tagged(&ENDPOINT),
    "Address that the listener binds.",
)
.required();
pub(super) const MAX_CONNECTIONS: Key = key(
    "max_connections",
    integer(1, u32::MAX as i64),
    "Maximum number of open connections of the listener. Another connection is closed at once.",
)
.otherwise("bounded by `limits.sessions_max`");
pub(super) const ADMITS: Key = key(
    "admits",
    Kind::Map {
        keys: Rule::RealmName,
        of: &list(&Kind::Text(Rule::NotEmpty)),
        environment: false,
    },
    "Realms, each with the roles, that sessions of this transport may join. A session of another role is sent ABORT \
     with `wamp.error.no_such_role`, of another realm with `wamp.error.no_such_realm`. A proxy's `routes` become \
     this key.",
)
.otherwise("all of them")
.own();
pub(super) const PAGES_KEY: Key = key(
    "pages",
    list(&PAGE),
    "Pages served to plain HTTP requests on the port: `health` at `/health`, `metrics` at `/metrics`, `status` at \
     `/`.",
)
.otherwise("none")
.own();
pub(super) const ALLOWED_HOSTS: Key = key(
    "allowed_hosts",
    list_not_empty(&Kind::Text(Rule::NotEmpty)),
    "Host names accepted in the `Host` header of HTTP requests. `*` matches anything; a name without a port matches \
     any port. The check rejects pages of other sites whose name resolves to this machine.",
)
.otherwise(
    "loopback names (`localhost`, `*.localhost`, 127.0.0.0/8, `::1`) at a loopback address without \
     `allowed_origins`; else any",
)
.own();
pub(super) const SERIALIZERS_KEY: Key = key(
    "serializers",
    list_not_empty(&SERIALIZER),
    "Serializers that clients may choose; over WebSocket each also in its batched form.",
)
.otherwise("all of them");
pub(super) const AUTH_KEY: Key = key(
    "auth",
    Kind::Object(&AUTH),
    "Authentication methods of the transport. An empty object counts as none.",
)
.otherwise("`anonymous`, with the role `anonymous`");
pub(super) const COOKIE_KEY: Key = key(
    "cookie",
    Kind::Object(&COOKIE),
    "Cookie that identifies returning browsers (`auth.cookie`).",
)
.otherwise("none");
pub(super) const DEBUG: Key =
    key("debug", Kind::Boolean, "").inert("the log level says what is logged");

pub(super) static RAWSOCKET_TRANSPORT: Table = Table {
    path: "transports[rawsocket]",
    name: "a RawSocket transport",
    keys: &[
        TYPE,
        TRANSPORT_ID,
        ENDPOINT_KEY,
        MAX_CONNECTIONS,
        LISTENER_LIMITS_KEY,
        ADMITS,
        SERIALIZERS_KEY,
        AUTH_KEY,
        key(
            "options",
            Kind::Object(&RAWSOCKET_OPTIONS),
            "Options of the RawSocket protocol.",
        )
        .otherwise("the defaults"),
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
        LISTENER_LIMITS_KEY,
        ADMITS,
        URL,
        SERIALIZERS_KEY,
        AUTH_KEY,
        COOKIE_KEY,
        key(
            "options",
            Kind::Object(&WEBSOCKET_OPTIONS),
            "Options of the WebSocket protocol.",
        )
        .otherwise("the defaults"),
        PAGES_KEY,
        ALLOWED_HOSTS,
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
    keys: TESTEE_TRANSPORT_KEYS,
};

pub(super) const TESTEE_TRANSPORT_KEYS: &[Key] = &[
    TYPE,
    TRANSPORT_ID,
    ENDPOINT_KEY,
    MAX_CONNECTIONS.own(),
    URL,
    key(
        "options",
        Kind::Object(&WEBSOCKET_TESTEE_OPTIONS),
        "Options of the WebSocket protocol.",
    )
    .otherwise("the defaults"),
    TESTEE_DEBUG,
];

const TESTEE_DEBUG: Key = key(
    "debug",
    Kind::Boolean,
    "Logs the start and the end of each connection, with the reason.",
)
.fallback(NO);

pub(super) const URL: Key = key(
    "url",
    Kind::Text(Rule::WebSocketUrl),
    "Public address, if it is not the endpoint's own (behind a proxy).",
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
        LISTENER_LIMITS_KEY,
        ADMITS,
        key(
            "rawsocket",
            Kind::Object(&UNIVERSAL_RAWSOCKET),
            "RawSocket on the port.",
        )
        .otherwise("disabled"),
        key(
            "websocket",
            Kind::Map {
                keys: Rule::WebPath,
                of: &Kind::Object(&UNIVERSAL_WEBSOCKET),
                environment: false,
            },
            "WebSocket on the port, by path: `ws` stands for `/ws`.",
        )
        .otherwise("disabled"),
        key(
            "web",
            Kind::Object(&UNIVERSAL_WEB),
            "Web services on the port, at paths without a WebSocket.",
        )
        .otherwise("none"),
        PAGES_KEY,
        ALLOWED_HOSTS,
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
            "Type of the object; may be left out.",
        )
        .fallback(Fallback::Text("rawsocket")),
        SERIALIZERS_KEY,
        AUTH_KEY,
        key(
            "options",
            Kind::Object(&RAWSOCKET_OPTIONS),
            "Options of the RawSocket protocol.",
        )
        .otherwise("the defaults"),
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
            "Type of the object; may be left out.",
        )
        .fallback(Fallback::Text("websocket")),
        URL,
        SERIALIZERS_KEY,
        AUTH_KEY,
        COOKIE_KEY,
        key(
            "options",
            Kind::Object(&WEBSOCKET_OPTIONS),
            "Options of the WebSocket protocol.",
        )
        .otherwise("the defaults"),
        DEBUG,
    ],
};

static PAGE: Kind = Kind::OneOf(&PAGES);
pub(super) static SERIALIZER: Kind = Kind::OneOf(&SERIALIZERS);

pub(crate) static SERIALIZERS: Words = Words {
    path: "serializers[]",
    words: &["cbor", "msgpack", "json"],
};

pub(crate) static PAGES: Words = Words {
    path: "pages[]",
    words: &["health", "metrics", "status"],
};
