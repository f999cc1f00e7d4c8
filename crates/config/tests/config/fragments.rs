//! Fragments of a configuration, each with every message that it must give.
//!
//! `fragments.txt` holds them: `PLACE: FRAGMENT` puts the fragment, in JSON, into an otherwise
//! good file at that place, and the lines `=> MESSAGE` below are what is said, in the order of
//! the file; none where nothing is wrong. `BLESS=1` writes the messages anew.

#![allow(
    clippy::disallowed_methods,
    reason = "a test reads its cases from files"
)]

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use crosstie_config::{Format, Severity, Source, parse};

/// The files that fragments are put into, at `@`.
const PLACES: &[(&str, &str)] = &[
    ("file", "@"),
    (
        "controller",
        r#"{"version": 2, "controller": @, "workers": [WORKER]}"#,
    ),
    ("workers", r#"{"version": 2, "workers": @}"#),
    (
        "limits",
        r#"{"version": 2, "workers": [WORKER], "limits": @}"#,
    ),
    (
        "admin",
        r#"{"version": 2, "workers": [WORKER], "admin": @}"#,
    ),
    (
        "worker options",
        r#"{"version": 2, "workers": [{"type": "router", "options": @, "realms": [REALM], "transports": [TRANSPORT]}]}"#,
    ),
    (
        "realms",
        r#"{"version": 2, "workers": [{"type": "router", "realms": @, "transports": [TRANSPORT]}]}"#,
    ),
    (
        "roles",
        r#"{"version": 2, "workers": [{"type": "router", "realms": [{"name": "realm1", "roles": @}], "transports": [TRANSPORT]}]}"#,
    ),
    (
        "permissions",
        r#"{"version": 2, "workers": [{"type": "router", "realms": [{"name": "realm1", "roles": [{"name": "anonymous", "permissions": @}]}], "transports": [TRANSPORT]}]}"#,
    ),
    (
        "transports",
        r#"{"version": 2, "workers": [{"type": "router", "realms": [REALM], "transports": @}]}"#,
    ),
    (
        "endpoint",
        r#"{"version": 2, "workers": [{"type": "router", "realms": [REALM], "transports": [{"type": "rawsocket", "endpoint": @}]}]}"#,
    ),
    (
        "tls",
        r#"{"version": 2, "workers": [{"type": "router", "realms": [REALM], "transports": [{"type": "rawsocket", "endpoint": {"type": "tcp", "port": 1, "tls": @}}]}]}"#,
    ),
    (
        "auth",
        r#"{"version": 2, "workers": [{"type": "router", "realms": [REALM], "transports": [{"type": "rawsocket", "endpoint": {"type": "unix", "path": "s"}, "auth": @}]}]}"#,
    ),
    (
        "rawsocket",
        r#"{"version": 2, "workers": [{"type": "router", "realms": [REALM], "transports": [{"type": "rawsocket", "endpoint": {"type": "unix", "path": "s"}, "options": @}]}]}"#,
    ),
    (
        "websocket",
        r#"{"version": 2, "workers": [{"type": "router", "realms": [REALM], "transports": [{"type": "websocket", "endpoint": {"type": "unix", "path": "s"}, "options": @}]}]}"#,
    ),
    (
        "web",
        r#"{"version": 2, "workers": [{"type": "router", "realms": [REALM], "transports": [{"type": "web", "endpoint": {"type": "tcp", "port": 8080, "interface": "localhost"}, "paths": @}]}]}"#,
    ),
    (
        "web options",
        r#"{"version": 2, "workers": [{"type": "router", "realms": [REALM], "transports": [{"type": "web", "endpoint": {"type": "tcp", "port": 8080, "interface": "localhost"}, "paths": {"/": {"type": "none"}}, "options": @}]}]}"#,
    ),
    (
        "web tls",
        r#"{"version": 2, "workers": [{"type": "router", "realms": [REALM], "transports": [{"type": "web", "endpoint": {"type": "tcp", "port": 443, "interface": "localhost", "tls": {"key": "k.pem", "certificate": "c.pem"}}, "paths": {"/": {"type": "caller", "realm": "realm1", "role": "anonymous", "options": {"require_tls": true}}}, "options": @}]}]}"#,
    ),
    (
        "universal web",
        r#"{"version": 2, "workers": [{"type": "router", "realms": [REALM], "transports": [{"type": "universal", "endpoint": {"type": "unix", "path": "s"}, "web": @}]}]}"#,
    ),
    (
        "cookie",
        r#"{"version": 2, "workers": [{"type": "router", "realms": [REALM], "transports": [{"type": "websocket", "endpoint": {"type": "unix", "path": "s"}, "auth": {"cookie": {}}, "cookie": @}]}]}"#,
    ),
    (
        "router components",
        r#"{"version": 2, "workers": [{"type": "router", "realms": [REALM], "transports": [TRANSPORT], "components": @}]}"#,
    ),
    (
        "container options",
        r#"{"version": 2, "workers": [{"type": "container", "options": @, "components": [COMPONENT]}]}"#,
    ),
    (
        "components",
        r#"{"version": 2, "workers": [{"type": "container", "components": @}]}"#,
    ),
    (
        "callbacks",
        r#"{"version": 2, "workers": [{"type": "container", "components": [{"type": "function", "realm": "realm1", "transport": CONNECTING, "callbacks": @}]}]}"#,
    ),
    (
        "component auth",
        r#"{"version": 2, "workers": [{"type": "container", "components": [{"type": "function", "realm": "realm1", "transport": CONNECTING, "callbacks": {"join": "main.joined"}, "auth": @}]}]}"#,
    ),
    (
        "connecting",
        r#"{"version": 2, "workers": [{"type": "container", "components": [{"type": "class", "classname": "main.Session", "realm": "realm1", "transport": @}]}]}"#,
    ),
    (
        "connecting endpoint",
        r#"{"version": 2, "workers": [{"type": "container", "components": [{"type": "class", "classname": "main.Session", "realm": "realm1", "transport": {"type": "rawsocket", "serializer": "cbor", "endpoint": @}}]}]}"#,
    ),
    (
        "connecting tls",
        r#"{"version": 2, "workers": [{"type": "container", "components": [{"type": "class", "classname": "main.Session", "realm": "realm1", "transport": {"type": "rawsocket", "serializer": "cbor", "endpoint": {"type": "tcp", "host": "localhost", "port": 443, "tls": @}}}]}]}"#,
    ),
    (
        "connecting websocket",
        r#"{"version": 2, "workers": [{"type": "container", "components": [{"type": "class", "classname": "main.Session", "realm": "realm1", "transport": {"type": "websocket", "url": "ws://localhost/ws", "endpoint": {"type": "tcp", "host": "localhost", "port": 80}, "options": @}}]}]}"#,
    ),
    (
        "amqp",
        r#"{"version": 2, "workers": [{"type": "router", "amqp": @, "transports": [BROKER]}]}"#,
    ),
    (
        "joints",
        r#"{"version": 2, "workers": [{"type": "router", "amqp": {"users": [{"name": "one", "password": "p", "tags": ["impersonator"]}, {"name": "two", "password": "p"}], "vhosts": [{"name": "/", "permissions": [{"user": "one"}, {"user": "two"}]}, {"name": "other", "permissions": [{"user": "one"}]}]}, "realms": [REALM], "transports": [BROKER, TRANSPORT], "joints": @}]}"#,
    ),
    (
        "joints alone",
        r#"{"version": 2, "workers": [{"type": "router", "realms": [REALM], "transports": [TRANSPORT], "joints": @}]}"#,
    ),
    (
        "amqp transport",
        r#"{"version": 2, "workers": [{"type": "router", "transports": [@]}]}"#,
    ),
    (
        "amqp tls",
        r#"{"version": 2, "workers": [{"type": "router", "transports": [{"type": "amqp", "endpoint": {"type": "tcp", "port": 5671, "tls": @}}]}]}"#,
    ),
    (
        "amqp options",
        r#"{"version": 2, "workers": [{"type": "router", "transports": [{"type": "amqp", "endpoint": {"type": "tcp", "port": 5672}, "options": @}]}]}"#,
    ),
    ("guest", r#"{"version": 2, "workers": [WORKER, @]}"#),
    (
        "guest options",
        r#"{"version": 2, "workers": [{"type": "guest", "executable": "sleep", "options": @}]}"#,
    ),
    (
        "testee",
        r#"{"version": 2, "workers": [{"type": "websocket-testee", "transport": @}]}"#,
    ),
    (
        "testee options",
        r#"{"version": 2, "workers": [{"type": "websocket-testee", "transport": {"type": "websocket", "endpoint": {"type": "tcp", "port": 9000}}, "options": @}]}"#,
    ),
    (
        "host monitor",
        r#"{"version": 2, "workers": [{"type": "hostmonitor", "options": @}]}"#,
    ),
];
const WORKER: &str = r#"{"type": "router", "realms": [REALM], "transports": [TRANSPORT]}"#;
const REALM: &str = r#"{"name": "realm1", "roles": [{"name": "anonymous"}]}"#;
const TRANSPORT: &str = r#"{"type": "rawsocket", "endpoint": {"type": "unix", "path": "s"}}"#;
const BROKER: &str = r#"{"type": "amqp", "endpoint": {"type": "tcp", "port": 5672}}"#;
const COMPONENT: &str =
    r#"{"type": "class", "classname": "main.Session", "realm": "realm1", "transport": CONNECTING}"#;
const CONNECTING: &str =
    r#"{"type": "rawsocket", "endpoint": {"type": "unix", "path": "s"}, "serializer": "cbor"}"#;

fn check(place: &str, fragment: &str) -> String {
    let known = PLACES.iter().find(|(name, _)| *name == place);
    let (_, file) = known.unwrap_or_else(|| panic!("there is no place {place}"));
    let file = file.replace('@', fragment).replace("WORKER", WORKER);
    let file = file.replace("REALM", REALM).replace("TRANSPORT", TRANSPORT);
    let file = file
        .replace("COMPONENT", COMPONENT)
        .replace("BROKER", BROKER);
    let file = file.replace("CONNECTING", CONNECTING);
    let source = Source::new("fragment".into(), file);
    let environment = |name: &str| match name {
        "PORT" => Some("9001".to_owned()),
        "NOT_A_PORT" => Some("http".to_owned()),
        _ => None,
    };
    let parsed = parse(&source, Format::Json, &environment);
    let mut problems = parsed.map_or_else(|problems| problems, |(_, warnings)| warnings);
    problems.sort_by_key(|problem| problem.span.start);
    let mut said = String::new();
    for problem in &problems {
        let kind = match problem.severity {
            Severity::Error => "",
            Severity::Warning => "warning: ",
        };
        let _ = writeln!(said, "=> {kind}{}", problem.message);
    }
    said
}

#[test]
fn every_fragment_is_said_of_what_is_expected() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fragments.txt");
    let wanted = fs::read_to_string(&path).expect("the fragments are there");
    let mut found = String::new();
    let mut count = 0;
    for line in wanted.lines() {
        if line.starts_with("=> ") {
            continue;
        }
        let _ = writeln!(found, "{line}");
        if let Some((place, fragment)) = line.split_once(": ")
            && !line.starts_with('#')
        {
            found += &check(place, fragment);
            count += 1;
        }
    }
    if std::env::var_os("BLESS").is_some() {
        fs::write(&path, &found).expect("the outcome can be written");
    }
    let wanted = fs::read_to_string(&path).expect("the fragments are there");
    assert!(count >= 100, "{count} fragments");
    let differing = wanted.lines().zip(found.lines()).find(|(w, f)| w != f);
    assert!(wanted == found, "wanted, found: {differing:#?}");
}
