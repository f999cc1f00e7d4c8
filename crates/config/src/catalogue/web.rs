//! Web transports, and the web services of universal ones: every key of theirs that is taken.

use super::endpoint::ENDPOINT;
use super::form::{
    Fallback, Kind, NO, Rule, TYPE, Table, Tagged, Words, integer, integer_or_zero, key,
};
use super::http_bridge::{CALLER, PUBLISHER, WEBHOOK};
use super::session_limits::LISTENER_LIMITS_KEY;
use super::transport::{ADMITS, ALLOWED_HOSTS, MAX_CONNECTIONS, PAGES_KEY, TRANSPORT_ID};
use super::web_files::{ARCHIVE, CGI, JSON, NODE_INFO, NONE, REDIRECT, STATIC};
use super::web_other::{
    LONG_POLL, RESOURCE, REVERSE_PROXY, WEB_WEBSOCKET, WEBSOCKET_REVERSE_PROXY, WSGI,
};

pub(super) static WEB_TRANSPORT: Table = Table {
    path: "transports[web]",
    name: "a web transport",
    keys: &[
        TYPE,
        TRANSPORT_ID,
        key(
            "endpoint",
            Kind::Tagged(&ENDPOINT),
            "Address that the listener binds.",
        )
        .required(),
        MAX_CONNECTIONS.own(),
        LISTENER_LIMITS_KEY,
        ADMITS,
        key("paths", paths(), PATHS_ABOUT).required(),
        key("options", Kind::Object(&WEB_OPTIONS), "Options of HTTP.").otherwise("the defaults"),
        PAGES_KEY,
        ALLOWED_HOSTS,
    ],
};

pub(super) static UNIVERSAL_WEB: Table = Table {
    path: "transports[universal].web",
    name: "web services in a universal transport",
    keys: &[
        key(
            "type",
            Kind::OneOf(&Words {
                path: "",
                words: &["web"],
            }),
            "Type of the object; may be left out.",
        )
        .fallback(Fallback::Text("web")),
        key("paths", paths(), PATHS_ABOUT).required(),
        key(
            "options",
            Kind::Object(&WEB_OPTIONS),
            "Options of HTTP. (Crossbar.io reads them in a web transport only.)",
        )
        .otherwise("the defaults"),
    ],
};

const PATHS_ABOUT: &str = "Services by the next component of a request's path: `files` stands for `/files` and \
                           everything below. `/` serves all other paths. A service of type `path` has deeper paths.";

static WEB_OPTIONS: Table = Table {
    path: "transports[web].options",
    name: "web options",
    keys: &[
        key(
            "access_log",
            Kind::Boolean,
            "Logs each request.",
        )
        .fallback(NO),
        key(
            "hsts",
            Kind::Boolean,
            "Tells browsers to use only TLS (`Strict-Transport-Security`, RFC 6797).",
        )
        .fallback(NO),
        key(
            "hsts_max_age",
            integer(0, 1 << 32),
            "Time that browsers keep to `hsts`, in seconds.",
        )
        .fallback(Fallback::Integer(31_536_000)),
        key(
            "client_timeout",
            Kind::OrNull(&integer_or_zero(1, 86_400)),
            "Maximum idle time of a connection, in seconds. After it the connection is closed. 0 and `null` are 75.",
        )
        .fallback(Fallback::Integer(60)),
        key(
            "unsent_bytes_max",
            integer(4096, 1 << 30),
            "Maximum unsent data per connection for a slow client, in bytes; the system holds about as much again. \
             At the limit the rest of the answer waits.",
        )
        .fallback(Fallback::Integer(65_536))
        .own(),
        key("display_tracebacks", Kind::Boolean, "")
            .inert("clients are never shown what failed inside"),
    ],
};

/// A function, because what holds itself can be a static alone.
const fn paths() -> Kind {
    Kind::Map {
        keys: Rule::WebPath,
        of: &SERVICE,
        environment: false,
    }
}

static SERVICE: Kind = Kind::Tagged(&WEB_SERVICE);

pub(super) static WEB_SERVICE: Tagged = Tagged {
    path: "transports[web].paths{}.type",
    name: "a web service",
    variants: &[
        ("static", &STATIC),
        ("path", &WEB_PATH),
        ("redirect", &REDIRECT),
        ("json", &JSON),
        ("nodeinfo", &NODE_INFO),
        ("websocket", &WEB_WEBSOCKET),
        ("longpoll", &LONG_POLL),
        ("caller", &CALLER),
        ("publisher", &PUBLISHER),
        ("webhook", &WEBHOOK),
        ("reverseproxy", &REVERSE_PROXY),
        ("websocket-reverseproxy", &WEBSOCKET_REVERSE_PROXY),
        ("archive", &ARCHIVE),
        ("cgi", &CGI),
        ("wsgi", &WSGI),
        ("resource", &RESOURCE),
        ("none", &NONE),
    ],
};

static WEB_PATH: Table = Table {
    path: "web[path]",
    name: "a nested web path",
    keys: &[
        TYPE,
        super::web_files::SERVICE_ID,
        key(
            "paths",
            paths(),
            "Services below the path, as in the transport.",
        )
        .required(),
    ],
};
