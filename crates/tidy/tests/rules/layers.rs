//! Who may depend on whom, and what the pure crates may not touch. ARCHITECTURE.md, "Layers".

use std::collections::BTreeSet;

use crosstie_tidy::{Member, manifest, members, sources};

/// Every edge that there may be. A new one is a change of the design: it belongs into
/// ARCHITECTURE.md in the same commit.
const EDGES: &str = "\
amqp:
mqtt:
wamp:
collections:
disk:
features:
script:
nats:
fabric: collections routing wamp
auth: amqp wamp
metadata: auth queues
queues: amqp auth collections
topics: collections mqtt
routing: collections wamp
config: auth joints routing wamp
joints:
rlinks: wamp
web: wamp
scenario: wamp
conformance: client scenario wamp
spans:
jetstream: nats
ledger: amqp queues
store: amqp disk queues routing wamp
streams: amqp disk queues
transport: collections
testee: transport wamp
client: auth wamp
front: auth collections config transport
realms: auth collections config fabric front jetstream nats routing spans store transport wamp web
broker: amqp auth collections config front jetstream ledger metadata nats queues spans store streams transport
mgmt: amqp auth broker metadata queues transport
site: config front realms routing transport wamp web
spaces: collections config front mqtt realms routing store topics transport wamp
fleets: amqp broker config front mqtt realms spaces transport
router: amqp auth broker client collections config fabric fleets front joints mgmt realms rlinks routing site spaces spans testee transport wamp web
node: client config router
amqp-client: amqp
oslo: amqp amqp-client joints
wan:
bench: amqp client mqtt nats oslo terminal wamp wan
report:
terminal: client
cli: amqp amqp-client auth client config fabric jetstream ledger metadata nats node queues store terminal wamp
crosstie: cli features
lab: bench client conformance features oslo report terminal testee transport wamp wan
tidy:
sim: amqp auth fabric ledger queues routing wamp
fuzz: amqp auth fabric jetstream joints ledger mqtt nats queues routing scenario store streams topics transport wamp web
";

/// The crates of each layer, from the lowest on; those beside the layers are in none.
const LAYERS: &[&str] = &[
    "amqp collections disk features mqtt nats script wamp",
    "auth config fabric joints ledger metadata queues rlinks routing scenario topics web",
    "amqp-client jetstream spans store streams transport wan",
    "client front oslo report testee",
    "broker conformance realms terminal",
    "bench fleets mgmt site spaces",
    "router",
    "node",
    "cli lab",
    "crosstie",
];

/// The crates that are not part of a program.
const BESIDE: &[&str] = &["fuzz", "sim", "tidy"];

/// The edges that stay within a layer. ARCHITECTURE.md says why.
const WITHIN: &[(&str, &str)] = &[
    ("config", "auth"),
    ("config", "joints"),
    ("config", "routing"),
    ("fabric", "routing"),
    ("fleets", "spaces"),
    ("ledger", "queues"),
    ("metadata", "auth"),
    ("metadata", "queues"),
    ("queues", "auth"),
];

/// Protocols that `front` does not name: an endpoint brings what is theirs.
const PROTOCOLS: &[&str] = &["crosstie_amqp", "crosstie_wamp"];

/// Crates without IO, clock, threads or chance, and the few files that are let out of it.
const PURE: &[(&str, &[&str])] = &[
    ("amqp", &[]),
    ("auth", &[]),
    ("collections", &[]),
    ("fabric", &[]),
    ("joints", &[]),
    ("ledger", &[]),
    ("metadata", &[]),
    ("mqtt", &[]),
    ("nats", &[]),
    ("queues", &[]),
    ("rlinks", &[]),
    ("scenario", &[]),
    ("script", &[]),
    ("topics", &[]),
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

fn edges() -> impl Iterator<Item = (&'static str, Vec<&'static str>)> {
    EDGES.lines().map(|line| {
        let (name, dependencies) = line.split_once(':').expect("a crate and its edges");
        (name, dependencies.split_whitespace().collect())
    })
}

/// The number of the crate's layer.
fn layer(name: &str) -> Option<usize> {
    LAYERS
        .iter()
        .position(|layer| layer.split_whitespace().any(|member| member == name))
}

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
    let known: BTreeSet<_> = edges().map(|(name, _)| name.to_owned()).collect();
    let found: BTreeSet<_> = members().into_iter().map(|member| member.name).collect();
    assert_eq!(found, known, "the table of edges names every crate");
    for member in members() {
        let (_, allowed) = edges()
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
fn edges_lead_to_lower_layers() {
    let mut within = Vec::new();
    for (name, dependencies) in edges() {
        if BESIDE.contains(&name) {
            assert_eq!(layer(name), None, "{name} is beside the layers");
            continue;
        }
        let own = layer(name).unwrap_or_else(|| panic!("{name} is in no layer"));
        for dependency in dependencies {
            let below = layer(dependency).unwrap_or_else(|| panic!("{dependency} is in no layer"));
            assert!(
                below <= own,
                "{name} of layer {own} depends on {dependency} of layer {below}"
            );
            if below == own {
                within.push((name, dependency));
            }
        }
    }
    within.sort_unstable();
    assert_eq!(within, WITHIN, "the edges that stay within a layer");
}

#[test]
fn architecture_has_the_layers() {
    let path = crosstie_tidy::root().join("ARCHITECTURE.md");
    let text = std::fs::read_to_string(path).expect("ARCHITECTURE.md");
    let mut found: Vec<BTreeSet<&str>> = vec![BTreeSet::new(); LAYERS.len()];
    let mut layer = None;
    let block = text.split("```").find(|block| block.contains("\nL0 "));
    for line in block.expect("a table of layers").lines() {
        let (head, rest) = line.split_at_checked(4).unwrap_or((line, ""));
        if let Some(number) = head.strip_prefix('L') {
            layer = number.trim().parse::<usize>().ok();
        }
        if let (Some(layer), Some(name)) = (layer, rest.split_whitespace().next()) {
            found[layer].insert(name);
        }
    }
    let expected: Vec<BTreeSet<&str>> = LAYERS
        .iter()
        .map(|layer| layer.split_whitespace().collect())
        .collect();
    assert_eq!(found, expected, "ARCHITECTURE.md, \"Layers\"");
}

#[test]
fn the_front_names_no_protocol() {
    let front = members().into_iter().find(|m| m.name == "front");
    for source in sources(&front.expect("a member").folder.join("src")) {
        for (number, line) in source.text.lines().enumerate() {
            for protocol in PROTOCOLS {
                assert!(
                    !line.contains(protocol),
                    "{}:{}: {protocol} in the crate that names no protocol",
                    source.path,
                    number + 1
                );
            }
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
