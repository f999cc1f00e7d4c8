//! Who may depend on whom, and what the pure crates may not touch. ARCHITECTURE.md, "Layers".

use std::collections::BTreeSet;

use crosstie_tidy::{Member, manifest, members, sources};

/// Every edge that there may be. A new one is a change of the design: it belongs into
/// ARCHITECTURE.md in the same commit.
const EDGES: &[(&str, &[&str])] = &[
    ("amqp", &[]),
    ("wamp", &[]),
    ("collections", &[]),
    ("script", &[]),
    ("nats", &[]),
    ("fabric", &["routing", "wamp"]),
    ("auth", &["amqp", "wamp"]),
    ("queues", &["amqp", "auth", "collections"]),
    ("routing", &["collections", "wamp"]),
    ("config", &["auth", "joints", "routing", "wamp"]),
    ("joints", &[]),
    ("rlinks", &["wamp"]),
    ("web", &["wamp"]),
    ("scenario", &["wamp"]),
    ("conformance", &["client", "scenario", "wamp"]),
    ("jetstream", &["nats"]),
    ("ledger", &["amqp", "queues"]),
    ("store", &["amqp", "queues", "routing", "wamp"]),
    ("transport", &[]),
    ("testee", &["transport", "wamp"]),
    ("client", &["auth", "wamp"]),
    (
        "router",
        &[
            "amqp",
            "auth",
            "client",
            "config",
            "fabric",
            "jetstream",
            "joints",
            "ledger",
            "nats",
            "queues",
            "rlinks",
            "routing",
            "store",
            "testee",
            "transport",
            "wamp",
            "web",
        ],
    ),
    ("node", &["client", "config", "router"]),
    ("oslo", &["amqp", "joints"]),
    ("wan", &[]),
    (
        "bench",
        &["amqp", "client", "nats", "oslo", "terminal", "wamp", "wan"],
    ),
    ("report", &[]),
    ("terminal", &["client"]),
    (
        "cli",
        &[
            "auth", "client", "config", "fabric", "nats", "node", "store", "terminal", "wamp",
        ],
    ),
    ("crosstie", &["cli"]),
    (
        "lab",
        &[
            "bench",
            "client",
            "conformance",
            "oslo",
            "report",
            "terminal",
            "testee",
            "transport",
            "wamp",
            "wan",
        ],
    ),
    ("tidy", &[]),
    (
        "sim",
        &[
            "amqp", "auth", "fabric", "ledger", "queues", "routing", "wamp",
        ],
    ),
    (
        "fuzz",
        &[
            "amqp",
            "auth",
            "fabric",
            "jetstream",
            "joints",
            "ledger",
            "nats",
            "queues",
            "routing",
            "scenario",
            "wamp",
            "web",
        ],
    ),
];

/// Crates without IO, clock, threads or chance, and the few files that are let out of it.
const PURE: &[(&str, &[&str])] = &[
    ("amqp", &[]),
    ("auth", &[]),
    ("collections", &[]),
    ("fabric", &[]),
    ("joints", &[]),
    ("ledger", &[]),
    ("nats", &[]),
    ("queues", &[]),
    ("rlinks", &[]),
    ("scenario", &[]),
    ("script", &[]),
    ("wamp", &[]),
    ("web", &[]),
    ("routing", &[]),
    ("config", &["crates/config/src/lib.rs"]),
];

/// What a pure crate does not name, as far as clippy cannot say it: whole modules and crates, and a keyword. Types and
/// functions of the standard library are in `crates/pure-clippy.toml`.
const IMPURE: &[&str] = &[
    "std::env",
    "std::fs",
    "std::os",
    "std::process",
    "std::thread",
    "async fn",
    "getrandom",
    "rand::",
    "tokio",
];

/// The file with what clippy holds the pure crates to.
const PURE_CLIPPY: &str = "crates/pure-clippy.toml";

/// The member of the workspace with this name.
fn pure(name: &str) -> Member {
    let mut members = members().into_iter();
    let found = members.find(|member| member.name == name);
    found.unwrap_or_else(|| panic!("{name} is no member of the workspace"))
}

#[test]
fn clippy_watches_every_pure_crate() {
    let expected = crosstie_tidy::root().join(PURE_CLIPPY);
    let expected = expected.canonicalize().expect(PURE_CLIPPY);
    for (name, _) in PURE {
        let link = pure(name).folder.join("clippy.toml");
        let target = link.canonicalize();
        assert!(
            link.is_symlink() && target.is_ok_and(|target| target == expected),
            "{}: expected a link to {PURE_CLIPPY}",
            link.display()
        );
    }
}

#[test]
fn crates_depend_only_downwards() {
    let known: BTreeSet<_> = EDGES.iter().map(|(name, _)| (*name).to_owned()).collect();
    let found: BTreeSet<_> = members().into_iter().map(|member| member.name).collect();
    assert_eq!(found, known, "the table of edges names every crate");
    for member in members() {
        let (_, allowed) = EDGES
            .iter()
            .find(|(name, _)| *name == member.name)
            .expect("is known");
        let manifest = manifest(&member.folder);
        let dependencies = manifest.get("dependencies").and_then(toml::Value::as_table);
        for dependency in dependencies.into_iter().flat_map(toml::Table::keys) {
            let Some(name) = dependency.strip_prefix("crosstie-") else {
                continue;
            };
            assert!(
                allowed.contains(&name),
                "{} depends on {name}; if that is meant, it is a change of the design",
                member.name
            );
        }
    }
}

#[test]
fn pure_crates_name_nothing_impure() {
    for (name, exempt) in PURE {
        for source in sources(&pure(name).folder.join("src")) {
            if exempt.contains(&source.path.as_str()) {
                continue;
            }
            let code = source
                .without_tests()
                .lines()
                .map(|line| line.split("//").next().unwrap_or(""));
            for (number, line) in code.enumerate() {
                for word in IMPURE {
                    assert!(
                        !line.contains(word),
                        "{}:{}: {word} in a crate without IO, clock, threads and chance",
                        source.path,
                        number + 1
                    );
                }
            }
        }
    }
}

#[test]
fn architecture_names_every_crate() {
    let path = crosstie_tidy::root().join("ARCHITECTURE.md");
    let text = std::fs::read_to_string(path).expect("ARCHITECTURE.md");
    for member in members() {
        assert!(
            text.contains(&format!("`{}`", member.name)),
            "ARCHITECTURE.md on {}",
            member.name
        );
    }
}
