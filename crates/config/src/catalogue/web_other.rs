//! Web services that others serve: sessions, servers behind, programs. Long and flat.

use super::connecting::CONNECTING_ENDPOINT;
use super::form::{
    Fallback, Key, Kind, NO, Rule, TYPE, Table, Words, integer, integer_or_zero, key,
};
use super::options::WEBSOCKET_OPTIONS;
use super::transport::{AUTH_KEY, COOKIE_KEY, DEBUG, SERIALIZERS_KEY, URL};
use super::web_files::SERVICE_ID;

pub(super) static WEB_WEBSOCKET: Table = Table {
    path: "web[websocket]",
    name: "WebSocket at a web path",
    keys: &[
        TYPE,
        SERVICE_ID,
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

pub(super) static LONG_POLL: Table = Table {
    path: "web[longpoll]",
    name: "a long-poll service",
    keys: &[
        TYPE,
        SERVICE_ID,
        SERIALIZERS_KEY.own(),
        AUTH_KEY.own(),
        key(
            "options",
            Kind::Object(&LONG_POLL_OPTIONS),
            "Options of long-poll sessions.",
        )
        .otherwise("the defaults"),
    ],
};

static LONG_POLL_OPTIONS: Table = Table {
    path: "web[longpoll].options",
    name: "long-poll options",
    keys: &[
        key(
            "session_timeout",
            integer_or_zero(1, 86_400),
            "Lifetime of a session without requests, in seconds. 0 is a day.",
        )
        .fallback(Fallback::Integer(30)),
        key(
            "request_timeout",
            integer(0, 3_600),
            "Maximum time that a request waits for the first message, in seconds. After it the answer is empty. 0 \
             waits forever. (In Crossbar.io it has no effect; Autobahn|JS gives up after 12.)",
        )
        .fallback(Fallback::Integer(10)),
        key(
            "queue_limit_bytes",
            integer(0, 1 << 30),
            "Maximum data queued for a session between requests, in bytes. 0 applies `limits.queue_bytes_max`. \
             (Crossbar.io has 131,072, without effect.)",
        )
        .fallback(Fallback::Integer(0)),
        key(
            "queue_limit_messages",
            integer(0, 1_000_000),
            "Maximum number of messages queued for a session between requests. 0 sets no bound. (Crossbar.io has \
             100, without effect.)",
        )
        .fallback(Fallback::Integer(0)),
        key(
            "max_message_size",
            integer(512, 16 << 20),
            "Maximum size of a received message, in bytes.",
        )
        .otherwise("16,777,216, or `limits.queue_bytes_max` if that is less")
        .own(),
        key("debug", Kind::Boolean, "").inert("the log level says what is logged"),
        key("debug_transport_id", Kind::Text(Rule::Any), "")
            .inert("a guessed session id would give access to the session"),
    ],
};

const REQUESTS_MAX: Key = key(
    "requests_max",
    integer(1, 100_000),
    "Maximum number of concurrent forwarded requests. As many more wait for `timeout`; further ones get status 503.",
)
.own();

const TIMEOUT: Key = key(
    "timeout",
    integer(1, 86_400),
    "Maximum time for an answer to begin, and between its parts, in seconds. After it the client gets status 504.",
)
.fallback(Fallback::Integer(60))
.own();

pub(super) static REVERSE_PROXY: Table = Table {
    path: "web[reverseproxy]",
    name: "a reverse proxy",
    keys: &[
        TYPE,
        SERVICE_ID,
        key(
            "host",
            Kind::Text(Rule::Host),
            "Host that requests are forwarded to.",
        )
        .required()
        .environment(),
        key("port", integer(1, 65_535), "Port of that host.")
            .required()
            .environment(),
        key(
            "path",
            Kind::Text(Rule::UrlPath),
            "Path that replaces the service's own path.",
        )
        .fallback(Fallback::Text("")),
        key(
            "forwarded_port",
            integer(1, 65_535),
            "Value of `X-Forwarded-Port`: the port that the client asked.",
        )
        .fallback(Fallback::Integer(80)),
        key(
            "forwarded_proto",
            Kind::OneOf(&Words {
                path: "",
                words: &["http", "https"],
            }),
            "Value of `X-Forwarded-Proto`: the protocol that the client used.",
        )
        .fallback(Fallback::Text("http")),
        key(
            "rewrite_answers",
            Kind::Boolean,
            "Rewrites the server's own address and path in answers (`Location`, and `Domain` and `Path` of \
             `Set-Cookie`) to those that clients use.",
        )
        .fallback(NO)
        .own(),
        REQUESTS_MAX.fallback(Fallback::Integer(256)),
        TIMEOUT,
    ],
};

pub(super) static WEBSOCKET_REVERSE_PROXY: Table = Table {
    path: "web[websocket-reverseproxy]",
    name: "a reverse proxy of WebSockets",
    keys: &[
        TYPE,
        SERVICE_ID,
        URL,
        key(
            "options",
            Kind::Object(&WEBSOCKET_OPTIONS),
            "Origins whose pages may connect (`allowed_origins`, `allow_null_origin`), and the answer to probes \
             (`enable_webstatus`). Client and server agree on all other options.",
        )
        .otherwise("the defaults"),
        key(
            "backend",
            Kind::Object(&BACKEND),
            "Server that connections are forwarded to.",
        )
        .required(),
        key(
            "connections_max",
            integer(1, 1_000_000),
            "Maximum number of forwarded connections. Another one gets status 503.",
        )
        .fallback(Fallback::Integer(1_000))
        .own(),
        key(
            "timeout",
            integer(1, 86_400),
            "Maximum time for the server to answer the opening handshake, in seconds. After it the client gets \
             status 504.",
        )
        .fallback(Fallback::Integer(30))
        .own(),
    ],
};

static BACKEND: Table = Table {
    path: "web[websocket-reverseproxy].backend",
    name: "the server behind a reverse proxy of WebSockets",
    keys: &[
        key(
            "type",
            Kind::OneOf(&Words {
                path: "",
                words: &["websocket"],
            }),
            "Protocol of the server.",
        )
        .required(),
        SERVICE_ID,
        key(
            "url",
            Kind::Text(Rule::WebSocketUrl),
            "URL of the server's WebSocket, over TLS if it begins with `wss`.",
        )
        .required()
        .environment(),
        key(
            "endpoint",
            Kind::Tagged(&CONNECTING_ENDPOINT),
            "Address of the server. It must be the URL's own host and port; only `localhost` has other names.",
        )
        .otherwise("made from the URL"),
        key("serializers", Kind::Json, "").inert("what the client asks for is passed on"),
        key("options", Kind::Json, "").inert("client and server agree on how WebSocket is spoken"),
        DEBUG,
    ],
};

const BODY_BYTES_MAX: Key = key(
    "body_bytes_max",
    integer(0, 1 << 40),
    "Maximum size of a request body, in bytes. A longer one gets status 413. A body above 100,000 bytes is kept in a \
     temporary file until the program has read it.",
)
.fallback(Fallback::Integer(16 << 20))
.own();

pub(super) static WSGI: Table = Table {
    path: "web[wsgi]",
    name: "a WSGI application",
    keys: &[
        TYPE,
        SERVICE_ID,
        key(
            "module",
            Kind::Text(Rule::NotEmpty),
            "Python module of the application.",
        )
        .required(),
        key(
            "object",
            Kind::Text(Rule::NotEmpty),
            "Name of the application in the module.",
        )
        .required(),
        key(
            "minthreads",
            integer(0, 1_024),
            "Minimum number of threads.",
        )
        .fallback(Fallback::Integer(0)),
        key(
            "maxthreads",
            integer(1, 1_024),
            "Maximum number of threads, and so of concurrent requests.",
        )
        .fallback(Fallback::Integer(20)),
        REQUESTS_MAX.fallback(Fallback::Integer(64)),
        TIMEOUT,
        BODY_BYTES_MAX,
    ],
};

pub(super) static RESOURCE: Table = Table {
    path: "web[resource]",
    name: "a Twisted resource",
    keys: &[
        TYPE,
        SERVICE_ID,
        key(
            "classname",
            Kind::Text(Rule::PythonName),
            "Class of the resource, with its module.",
        )
        .required(),
        key(
            "extra",
            Kind::Json,
            "Value of any type, passed to the class.",
        )
        .otherwise("none"),
        REQUESTS_MAX.fallback(Fallback::Integer(256)),
        TIMEOUT,
        BODY_BYTES_MAX,
    ],
};
