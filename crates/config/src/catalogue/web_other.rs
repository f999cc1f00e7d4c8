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
            "How WebSocket is spoken.",
        )
        .otherwise("all of their defaults"),
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
            "How sessions live in requests.",
        )
        .otherwise("all of their defaults"),
    ],
};

static LONG_POLL_OPTIONS: Table = Table {
    path: "web[longpoll].options",
    name: "long-poll options",
    keys: &[
        key(
            "session_timeout",
            integer_or_zero(1, 86_400),
            "How long a session lives of which no request comes, in seconds; 0: a day.",
        )
        .fallback(Fallback::Integer(30)),
        key(
            "request_timeout",
            integer(0, 3_600),
            "How long a request for messages waits for the first, in seconds, before its answer is empty; 0: for \
             ever. (On Crossbar.io it is without effect; Autobahn|JS gives up after 12.)",
        )
        .fallback(Fallback::Integer(10)),
        key(
            "queue_limit_bytes",
            integer(0, 1 << 30),
            "Bytes that wait for a session between its requests, as on a stream behind a full socket; 0: as many as \
             `limits.queue_bytes_max`. (Crossbar.io says 131,072, without effect.)",
        )
        .fallback(Fallback::Integer(0)),
        key(
            "queue_limit_messages",
            integer(0, 1_000_000),
            "Messages that wait for a session between its requests; 0: any number. (Crossbar.io says 100, without \
             effect.)",
        )
        .fallback(Fallback::Integer(0)),
        key(
            "max_message_size",
            integer(512, 16 << 20),
            "The largest message that is taken, in bytes.",
        )
        .otherwise("16,777,216, or `limits.queue_bytes_max` if that is less")
        .own(),
        key("debug", Kind::Boolean, "").inert("the log level says what is logged"),
        key("debug_transport_id", Kind::Text(Rule::Any), "")
            .inert("whoever guessed a session's id would have the session"),
    ],
};

const REQUESTS_MAX: Key = key(
    "requests_max",
    integer(1, 100_000),
    "Requests that are passed on at a time. As many more wait for `timeout`; beyond, clients are told to come \
     again (503).",
)
.own();

const TIMEOUT: Key = key(
    "timeout",
    integer(1, 86_400),
    "How long an answer may take to begin, and may be silent before its end, in seconds (504).",
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
            "The host that requests are passed to.",
        )
        .required()
        .environment(),
        key("port", integer(1, 65_535), "Its port.")
            .required()
            .environment(),
        key(
            "path",
            Kind::Text(Rule::UrlPath),
            "What takes the place of the service's own path.",
        )
        .fallback(Fallback::Text("")),
        key(
            "forwarded_port",
            integer(1, 65_535),
            "What the server is told of the port that the client asked (`X-Forwarded-Port`).",
        )
        .fallback(Fallback::Integer(80)),
        key(
            "forwarded_proto",
            Kind::OneOf(&Words {
                path: "",
                words: &["http", "https"],
            }),
            "What the server is told of how the client asked (`X-Forwarded-Proto`).",
        )
        .fallback(Fallback::Text("http")),
        key(
            "rewrite_answers",
            Kind::Boolean,
            "Whether what an answer says of the server's own address and path (`Location`, `Domain` and `Path` of \
             `Set-Cookie`) becomes what its clients know it by.",
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
            "The origins whose pages may connect (`allowed_origins`, `allow_null_origin`), and the answer to probes \
             (`enable_webstatus`). Client and server agree on everything else.",
        )
        .otherwise("all of their defaults"),
        key(
            "backend",
            Kind::Object(&BACKEND),
            "The server that connections are passed to.",
        )
        .required(),
        key(
            "connections_max",
            integer(1, 1_000_000),
            "Connections that are passed on at a time; beyond, clients are told to come again (503).",
        )
        .fallback(Fallback::Integer(1_000))
        .own(),
        key(
            "timeout",
            integer(1, 86_400),
            "How long the server may take to answer the opening handshake, in seconds (504).",
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
            "What it speaks.",
        )
        .required(),
        SERVICE_ID,
        key(
            "url",
            Kind::Text(Rule::WebSocketUrl),
            "The URL that is asked for, over TLS if it begins with `wss`.",
        )
        .required()
        .environment(),
        key(
            "endpoint",
            Kind::Tagged(&CONNECTING_ENDPOINT),
            "Where the URL leads; it must be the URL's own host and port, and only `localhost` has other names.",
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
    "The longest body of a request that is taken, in bytes (413). What is longer than 100,000 bytes lies in a \
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
            "The Python module that has it.",
        )
        .required(),
        key(
            "object",
            Kind::Text(Rule::NotEmpty),
            "Its name in the module.",
        )
        .required(),
        key(
            "minthreads",
            integer(0, 1_024),
            "Threads that wait for requests.",
        )
        .fallback(Fallback::Integer(0)),
        key(
            "maxthreads",
            integer(1, 1_024),
            "Threads at most: requests that are served at a time.",
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
            "The class, with its module.",
        )
        .required(),
        key("extra", Kind::Json, "What it is made with.").otherwise("nothing"),
        REQUESTS_MAX.fallback(Fallback::Integer(256)),
        TIMEOUT,
        BODY_BYTES_MAX,
    ],
};
