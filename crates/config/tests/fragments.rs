//! Fragments of a configuration, each with every message that it must give.
//!
//! `fragments.txt` holds them: `PLACE: FRAGMENT` puts the fragment, in JSON, into an otherwise
//! good file at that place, and the lines `=> MESSAGE` below are what is said, in the order of
//! the file; none where nothing is wrong. `BLESS=1` writes the messages anew.

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
];
const WORKER: &str = r#"{"type": "router", "realms": [REALM], "transports": [TRANSPORT]}"#;
const REALM: &str = r#"{"name": "realm1", "roles": [{"name": "anonymous"}]}"#;
const TRANSPORT: &str = r#"{"type": "rawsocket", "endpoint": {"type": "unix", "path": "s"}}"#;

fn check(place: &str, fragment: &str) -> String {
    let known = PLACES.iter().find(|(name, _)| *name == place);
    let (_, file) = known.unwrap_or_else(|| panic!("there is no place {place}"));
    let file = file.replace('@', fragment).replace("WORKER", WORKER);
    let file = file.replace("REALM", REALM).replace("TRANSPORT", TRANSPORT);
    let source = Source {
        name: "fragment".into(),
        text: file,
    };
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
