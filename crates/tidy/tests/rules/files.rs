//! What every file looks like. STYLE.md, points 13, 15 and 20.

use crosstie_tidy::{Source, members, sources};

/// A file beyond this holds two ideas; most hold one in a third of it.
const LINES_MAX: usize = 600;

/// The files with unsafe code; each says in a paragraph why it is sound.
const UNSAFE: &[&str] = &[
    "crates/transport/src/allocator.rs",
    "crates/transport/src/handed.rs",
    "crates/transport/src/image.rs",
    "crates/transport/src/memory.rs",
    "crates/transport/src/readiness.rs",
    "crates/wamp/src/codec/json/plain.rs",
];

fn all() -> Vec<Source> {
    members()
        .iter()
        .flat_map(|member| sources(&member.folder))
        .collect()
}

#[test]
fn every_file_begins_with_what_it_is_for() {
    for source in all() {
        assert!(
            source.text.starts_with("//! "),
            "{}: expected a first line `//! …`",
            source.path
        );
    }
}

#[test]
fn files_hold_one_idea() {
    // Tests may be long tables of cases.
    for source in all().iter().filter(|source| source.path.contains("/src/")) {
        let lines = source.text.lines().count();
        assert!(
            lines <= LINES_MAX,
            "{}: {lines} lines; expected at most {LINES_MAX}",
            source.path
        );
    }
}

#[test]
fn nothing_is_left_for_later() {
    // Put together here, so that this file does not find itself.
    let left = [
        ["to", "do!("],
        ["unimpl", "emented!("],
        ["FIX", "ME"],
        ["XX", "X"],
        ["#[ig", "nore"],
    ];
    for source in all() {
        for word in left.map(|parts| parts.concat()) {
            assert!(!source.text.contains(&word), "{}: {word}", source.path);
        }
    }
}

#[test]
fn unsafe_code_is_where_it_is_known_to_be() {
    for source in all() {
        if source.text.contains(&["unsafe", " {"].concat()) {
            assert!(
                UNSAFE.contains(&source.path.as_str()),
                "{}: unsafe code",
                source.path
            );
            assert!(
                source.text.contains("SAFETY:"),
                "{}: without a SAFETY paragraph",
                source.path
            );
        }
    }
}
