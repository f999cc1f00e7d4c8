//! Web transports, and the web services of universal ones: every key of theirs that is taken.

use std::time::Duration;

use super::endpoint::ENDPOINT;
use super::form::{Kind, OFF, Rule, TYPE, Words, integer, integer_or_zero, object, one_of, tagged};
use super::http_bridge::{CALLER, PUBLISHER, WEBHOOK};
use super::session_limits::LISTENER_LIMITS_KEY;
use super::table::tables;
use super::transport::{ADMITS, ALLOWED_HOSTS, MAX_CONNECTIONS, PAGES_KEY, TRANSPORT_ID};
use super::web_files::{ARCHIVE, CGI, JSON, NODE_INFO, NONE, REDIRECT, STATIC};
use super::web_other::{
    LONG_POLL, RESOURCE, REVERSE_PROXY, WEB_WEBSOCKET, WEBSOCKET_REVERSE_PROXY, WSGI,
};
use crate::plain;

tables! {
    pub(super) static WEB_TRANSPORT("transports[web]", "a web transport") {
        ..TYPE, TRANSPORT_ID;
        "endpoint" = tagged(&ENDPOINT).required(), "Address that the listener binds.";
        ..MAX_CONNECTIONS.own(), LISTENER_LIMITS_KEY, ADMITS;
        "paths" = paths().required(), PATHS_ABOUT;
        "options" = object(&WEB_OPTIONS).otherwise("the defaults"), "Options of HTTP.";
        ..PAGES_KEY, ALLOWED_HOSTS;
    }

    pub(super) static UNIVERSAL_WEB("transports[universal].web", "web services in a universal transport") {
        "type" = one_of(&Words { path: "", words: &["web"] }).or_text("web"), "Type of the object; may be left out.";
        "paths" = paths().required(), PATHS_ABOUT;
        "options" = object(&WEB_OPTIONS).otherwise("the defaults"),
            "Options of HTTP. (Crossbar.io reads them in a web transport only.)";
    }
}

const PATHS_ABOUT: &str = "Services by the next component of a request's path: `files` stands for `/files` and \
                           everything below. `/` serves all other paths. A service of type `path` has deeper paths.";

tables! {
    /// Options of HTTP on a listener.
    #[derive(Clone, Debug, PartialEq)]
    pub struct WebOptions = pub(crate) static WEB_OPTIONS("transports[web].options", "web options") {
        access_log: bool = OFF, "Logs each request.";
        "hsts" = OFF, "Tells browsers to use only TLS (`Strict-Transport-Security`, RFC 6797).";
        hsts_max_age: Option<Duration> as plain::seconds_or_null = integer(0, 1 << 32).or(31_536_000),
            "Time that browsers keep to `hsts`, in seconds.";
        client_timeout: Option<Duration> as plain::positive_seconds = Kind::OrNull(&integer_or_zero(1, 86_400)).or(60),
            "Maximum idle time of a connection, in seconds. After it the connection is closed. 0 and `null` are 75.";
        unsent_bytes_max: usize = integer(4096, 1 << 30).or(65_536).own(),
            "Maximum unsent data per connection for a slow client, in bytes; the system holds about as much again. \
             At the limit the rest of the answer waits.";
        "display_tracebacks" = Kind::Boolean.inert("clients are never shown what failed inside");
    }
}

/// A function: only a static may refer to itself.
const fn paths() -> Kind {
    Kind::Map {
        keys: Rule::WebPath,
        of: &SERVICE,
        environment: false,
    }
}

static SERVICE: Kind = Kind::Tagged(&WEB_SERVICE);

tables! {
    pub(super) tagged WEB_SERVICE("transports[web].paths{}.type", "a web service") {
        "static" => STATIC,
        "path" => WEB_PATH,
        "redirect" => REDIRECT,
        "json" => JSON,
        "nodeinfo" => NODE_INFO,
        "websocket" => WEB_WEBSOCKET,
        "longpoll" => LONG_POLL,
        "caller" => CALLER,
        "publisher" => PUBLISHER,
        "webhook" => WEBHOOK,
        "reverseproxy" => REVERSE_PROXY,
        "websocket-reverseproxy" => WEBSOCKET_REVERSE_PROXY,
        "archive" => ARCHIVE,
        "cgi" => CGI,
        "wsgi" => WSGI,
        "resource" => RESOURCE,
        "none" => NONE,
    }

    static WEB_PATH("web[path]", "a nested web path") {
        ..TYPE, super::web_files::SERVICE_ID;
        "paths" = paths().required(), "Services below the path, as in the transport.";
    }
}
