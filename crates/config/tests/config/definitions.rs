//! RabbitMQ's definitions: what is taken of whole files, what is said of parts of them, and how they
//! join a configuration.
//!
//! Beside each `definitions/NAME.json` stands `NAME.json.expect`: what was read and what was not.
//! `rabbitmq-*.json` are files that RabbitMQ's own `export_definitions` wrote; the others have the
//! forms of older and newer versions. `BLESS=1` writes what is there anew.

#![allow(
    clippy::disallowed_methods,
    reason = "a test reads its cases from files"
)]

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use crosstie_config::{Amqp, Definitions};

fn folder() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/definitions")
}

fn read(name: &str) -> Definitions {
    Definitions::load(&folder().join(name)).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn every_file_is_read_as_expected() {
    let mut names: Vec<String> = fs::read_dir(folder())
        .expect("there are files")
        .filter_map(|file| file.ok()?.file_name().into_string().ok())
        .filter(|name| name.ends_with(".json"))
        .collect();
    names.sort();
    assert!(names.len() >= 3, "{names:?}");
    for name in names {
        let mut definitions = read(&name);
        let mut found = String::new();
        for skipped in std::mem::take(&mut definitions.skipped) {
            let _ = writeln!(found, "{skipped}");
        }
        let _ = writeln!(found, "{definitions:#?}");
        let path = folder().join(format!("{name}.expect"));
        if std::env::var_os("BLESS").is_some() {
            fs::write(&path, &found).expect("the outcome can be written");
        }
        let wanted = fs::read_to_string(&path).unwrap_or_default();
        assert!(
            wanted == found,
            "{name}: wanted\n{wanted}\nfound\n{found}\nrun with BLESS=1"
        );
    }
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    let rows = [
        (
            "",
            "it is not JSON: EOF while parsing a value at line 1 column 0",
        ),
        (
            "[]",
            "an object is expected, as `rabbitmqctl export_definitions` writes it",
        ),
        (
            r#"{"users": {}}"#,
            "/users: a list is expected, found an object",
        ),
        (
            r#"{"users": [5]}"#,
            "/users/0: an object is expected, found a number",
        ),
        (r#"{"users": [{}]}"#, "/users/0: \"name\" is missing"),
        (
            r#"{"vhosts": [{"name": "/"}, {"name": null}]}"#,
            "/vhosts/1: \"name\" is missing",
        ),
        (
            r#"{"vhosts": [{"name": "/"}], "queues": [{"name": "q"}]}"#,
            "/queues/0: \"vhost\" is missing",
        ),
        (
            r#"{"vhosts": [{"name": "/"}], "queues": [{"name": "q", "vhost": "/", "durable": "yes"}]}"#,
            "/queues/0/durable: true or false is expected, found a text",
        ),
        (
            r#"{"vhosts": [{"name": "/"}], "queues": [{"name": "q", "vhost": "/", "arguments": 1}]}"#,
            "/queues/0/arguments: an object is expected, found a number",
        ),
        (
            r#"{"vhosts": [{"name": "/"}], "exchanges": [{"name": "x", "vhost": "/"}]}"#,
            "/exchanges/0: \"type\" is missing",
        ),
        (
            r#"{"policies": [{"name": "p"}]}"#,
            "/policies/0: \"vhost\" is missing",
        ),
    ];
    for (text, expected) in rows {
        let error = Definitions::parse(text.as_bytes()).expect_err(text);
        assert_eq!(error, expected, "{text}");
    }
    let long = format!(r#"{{"vhosts": [{{"name": "{}"}}]}}"#, "v".repeat(256));
    let error = Definitions::parse(long.as_bytes()).expect_err("a name that is too long");
    assert_eq!(
        error,
        "/vhosts/0/name: a name of at most 255 bytes is expected, found one of 256"
    );
    let missing = Definitions::load(&folder().join("missing.json")).expect_err("no file");
    assert!(missing.to_string().contains("missing.json"), "{missing}");
}

#[test]
fn passwords_that_rabbitmq_hashed_are_known_again() {
    let definitions = read("rabbitmq-3.10.8.json");
    let knows = |name: &str, password: &str| {
        let user = definitions.users.iter().find(|user| user.name == name);
        let hash = user.and_then(|user| user.password.as_ref());
        hash.is_some_and(|hash| hash.verify(password.as_bytes()))
    };
    assert!(knows("nova", "s3cret") && knows("test", "test") && knows("guest", "guest"));
    assert!(!knows("nova", "S3cret") && !knows("nopass", ""));
}

#[test]
fn definitions_join_what_the_configuration_says() {
    let definitions = read("rabbitmq-3.10.8.json");
    let mut amqp = Amqp {
        users: Vec::new(),
        vhosts: Vec::new(),
        ..Amqp::default()
    };
    amqp.import(&definitions);
    assert_eq!(amqp.users, definitions.users);
    assert_eq!(amqp.vhosts, definitions.vhosts);
    assert_eq!(amqp.unknown_users(), []);

    // Who is in both is as the configuration says.
    let mut amqp = Amqp::default();
    let guest = amqp.users[0].clone();
    amqp.vhosts[0].permissions[0].write = "^mine$".into();
    amqp.vhosts[0].permissions[0].user = "somebody".into();
    amqp.import(&definitions);
    assert_eq!(amqp.users.len(), definitions.users.len());
    assert_eq!(amqp.users[0], guest);
    let root = amqp.vhosts.iter().find(|vhost| vhost.name == "/");
    let named = root.map(|vhost| vhost.permissions.iter().map(|p| p.user.as_str()));
    let named: Vec<_> = named.into_iter().flatten().collect();
    assert_eq!(named, ["somebody", "test", "guest"]);
    assert_eq!(amqp.unknown_users(), [("somebody", "/")]);
}

#[test]
fn nothing_defined_is_the_default() {
    let mut amqp = Amqp {
        users: Vec::new(),
        vhosts: Vec::new(),
        ..Amqp::default()
    };
    amqp.import(&Definitions::default());
    assert_eq!(amqp, Amqp::default());
    let guest = &amqp.users[0];
    assert!(guest.name == "guest" && !guest.is_remote_allowed);
    assert_eq!(amqp.vhosts[0].name, "/");
}
