//! Keys of web services with a backend: sessions, other servers and Python programs.

use std::time::Duration;

use super::connecting::CONNECTING_ENDPOINT;
use super::form::{
    Kind, OFF, Rule, TYPE, Words, integer, integer_or_zero, object, one_of, tagged, text,
};
use super::options::WEBSOCKET_OPTIONS;
use super::table::tables;
use super::transport::{AUTH_KEY, COOKIE_KEY, DEBUG, SERIALIZERS_KEY, URL};
use super::web_files::SERVICE_ID;
use crate::plain;

tables! {
    pub(super) static WEB_WEBSOCKET("web[websocket]", "WebSocket at a web path") {
        ..TYPE, SERVICE_ID, URL, SERIALIZERS_KEY, AUTH_KEY, COOKIE_KEY;
        "options" = object(&WEBSOCKET_OPTIONS).otherwise("the defaults"), "Options of the WebSocket protocol.";
        ..DEBUG;
    }

    pub(super) static LONG_POLL("web[longpoll]", "a long-poll service") {
        ..TYPE, SERVICE_ID, SERIALIZERS_KEY.own(), AUTH_KEY.own();
        "options" = object(&LONG_POLL_OPTIONS).otherwise("the defaults"), "Options of long-poll sessions.";
    }

    static LONG_POLL_OPTIONS("web[longpoll].options", "long-poll options") {
        "session_timeout" = integer_or_zero(1, 86_400).or(30),
            "Lifetime of a session without requests, in seconds. 0 is a day.";
        "request_timeout" = integer(0, 3_600).or(10),
            "Maximum time that a request waits for the first message, in seconds. After it the answer is empty. 0 \
             waits forever. (In Crossbar.io it has no effect; Autobahn|JS gives up after 12.)";
        "queue_limit_bytes" = integer(0, 1 << 30).or(0),
            "Maximum data queued for a session between requests, in bytes. 0 applies `limits.queue_bytes_max`. \
             (Crossbar.io has 131,072, without effect.)";
        "queue_limit_messages" = integer(0, 1_000_000).or(0),
            "Maximum number of messages queued for a session between requests. 0 sets no bound. (Crossbar.io has \
             100, without effect.)";
        "max_message_size" = integer(512, 16 << 20)
            .otherwise("16,777,216, or `limits.queue_bytes_max` if that is less").own(),
            "Maximum size of a received message, in bytes.";
        "debug" = Kind::Boolean.inert("the log level says what is logged");
        "debug_transport_id" = text(Rule::Any).inert("a guessed session id would give access to the session");
    }

    const REQUESTS_MAX = "requests_max": integer(1, 100_000).optional().own(),
        "Maximum number of concurrent forwarded requests. As many more wait for `timeout`; further ones get \
         status 503.";
    const TIMEOUT = "timeout": integer(1, 86_400).or(60).own(),
        "Maximum time for an answer to begin, and between its parts, in seconds. After it the client gets \
         status 504.";

    /// Forwarding of requests to another HTTP server.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct ReverseProxy = pub(super) static REVERSE_PROXY("web[reverseproxy]", "a reverse proxy") {
        ..TYPE, SERVICE_ID;
        host: String = text(Rule::Host).required().environment(), "Host that requests are forwarded to.";
        port: u16 = integer(1, 65_535).required().environment(), "Port of that host.";
        path: String = text(Rule::UrlPath).or_text(""), "Path that replaces the service's own path.";
        forwarded_port: u16 = integer(1, 65_535).or(80),
            "Value of `X-Forwarded-Port`: the port that the client asked.";
        forwarded_proto: String = one_of(&Words { path: "", words: &["http", "https"] }).or_text("http"),
            "Value of `X-Forwarded-Proto`: the protocol that the client used.";
        rewrite_answers => rewrites_answers: bool = OFF.own(),
            "Rewrites the server's own address and path in answers (`Location`, and `Domain` and `Path` of \
             `Set-Cookie`) to those that clients use.";
        ..REQUESTS_MAX.or(256) => requests_max: usize;
        ..TIMEOUT => timeout: Duration as plain::seconds;
    }

    pub(super) static WEBSOCKET_REVERSE_PROXY("web[websocket-reverseproxy]", "a reverse proxy of WebSockets") {
        ..TYPE, SERVICE_ID, URL;
        "options" = object(&WEBSOCKET_OPTIONS).otherwise("the defaults"),
            "Origins whose pages may connect (`allowed_origins`, `allow_null_origin`), and the answer to probes \
             (`enable_webstatus`). Client and server agree on all other options.";
        "backend" = object(&BACKEND).required(), "Server that connections are forwarded to.";
        "connections_max" = integer(1, 1_000_000).or(1_000).own(),
            "Maximum number of forwarded connections. Another one gets status 503.";
        "timeout" = integer(1, 86_400).or(30).own(),
            "Maximum time for the server to answer the opening handshake, in seconds. After it the client gets \
             status 504.";
    }

    static BACKEND("web[websocket-reverseproxy].backend", "the server behind a reverse proxy of WebSockets") {
        "type" = one_of(&Words { path: "", words: &["websocket"] }).required(), "Protocol of the server.";
        ..SERVICE_ID;
        "url" = text(Rule::WebSocketUrl).required().environment(),
            "URL of the server's WebSocket, over TLS if it begins with `wss`.";
        "endpoint" = tagged(&CONNECTING_ENDPOINT).otherwise("made from the URL"),
            "Address of the server. It must be the URL's own host and port; only `localhost` has other names.";
        "serializers" = Kind::Json.inert("what the client asks for is passed on");
        "options" = Kind::Json.inert("client and server agree on how WebSocket is spoken");
        ..DEBUG;
    }

    const BODY_BYTES_MAX = "body_bytes_max": integer(0, 1 << 40).or(16 << 20).own(),
        "Maximum size of a request body, in bytes. A longer one gets status 413. A body above 100,000 bytes is \
         kept in a temporary file until the program has read it.";

    pub(super) static WSGI("web[wsgi]", "a WSGI application") {
        ..TYPE, SERVICE_ID;
        "module" = text(Rule::NotEmpty).required(), "Python module of the application.";
        "object" = text(Rule::NotEmpty).required(), "Name of the application in the module.";
        "minthreads" = integer(0, 1_024).or(0), "Minimum number of threads.";
        "maxthreads" = integer(1, 1_024).or(20), "Maximum number of threads, and so of concurrent requests.";
        ..REQUESTS_MAX.or(64), TIMEOUT, BODY_BYTES_MAX;
    }

    pub(super) static RESOURCE("web[resource]", "a Twisted resource") {
        ..TYPE, SERVICE_ID;
        "classname" = text(Rule::PythonName).required(), "Class of the resource, with its module.";
        "extra" = Kind::Json.optional(), "Value of any type, passed to the class.";
        ..REQUESTS_MAX.or(256), TIMEOUT, BODY_BYTES_MAX;
    }
}
