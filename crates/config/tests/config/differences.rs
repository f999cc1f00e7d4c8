//! Differences between configurations, and the effect of every key.
//!
//! `differences.txt` holds pairs of configurations in YAML, each with the changes between them: `=== NAME`, the older
//! one, `---`, the newer one, and a line `=> CHANGE` for each change. `==>` begins what a partial reload leaves different
//! from the newer one. `effects.txt` is the matrix of every key and its effects. `BLESS=1` writes both anew.

#![allow(
    clippy::disallowed_methods,
    reason = "a test reads its cases from files"
)]

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use crosstie_config::{Config, Difference, Format, Source, Tree, effects, parse_tree, render};

fn here(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests")
        .join(name)
}

fn compare(name: &str, wanted: &str) {
    let path = here(name);
    if std::env::var_os("BLESS").is_some() {
        fs::write(&path, wanted).expect("the file can be written");
    }
    let found = fs::read_to_string(&path).expect("the file is there");
    assert!(found == wanted, "{name} differs, BLESS=1 writes:\n{wanted}");
}

fn tree(text: &str) -> (Config, Tree) {
    let source = Source::new("case".into(), text.into());
    let environment = |name: &str| (name == "PASSWORD").then(|| "from the environment".into());
    parse_tree(&source, Format::Yaml, &environment)
        .unwrap_or_else(|problems| panic!("{text}\n{}", render(&problems, &source)))
}

#[test]
fn differences_are_named_key_by_key() {
    let cases = fs::read_to_string(here("differences.txt")).expect("the cases are there");
    let mut out = String::new();
    let mut count = 0;
    for case in cases.split("=== ").skip(1) {
        let (name, rest) = case.split_once('\n').expect("a name");
        let texts: Vec<&str> = rest.split("=>").next().into_iter().collect();
        let texts = texts[0].trim_end_matches('=');
        let (old, new) = texts.split_once("---\n").expect("two configurations");
        let ((_, before), (after_config, after)) = (tree(old), tree(new));
        let difference = Difference::between(&before, &after);
        let _ = writeln!(out, "=== {name}\n{old}---\n{}", new.trim_end());
        for change in &difference.changes {
            let _ = writeln!(out, "=> {change}");
        }
        check_partial(name, &difference, &before, &after, &after_config);
        if let Ok((_, partial)) = difference.partial() {
            for change in &Difference::between(&partial, &after).changes {
                let _ = writeln!(out, "==> {change}");
            }
        }
        out.push('\n');
        count += 1;
    }
    assert!(count >= 12, "{count} cases");
    compare("differences.txt", &out);
}

/// Relations that hold for every pair.
fn check_partial(
    name: &str,
    difference: &Difference,
    before: &Tree,
    after: &Tree,
    after_config: &Config,
) {
    assert!(
        Difference::between(before, before).changes.is_empty(),
        "{name}"
    );
    let Ok((config, partial)) = difference.partial() else {
        return;
    };
    // What was applied differs from what was before by all that needs no restart, and by nothing else.
    let applied = Difference::between(before, &partial).changes;
    let expected = difference.changes.iter();
    let needs_restart: Vec<_> = difference.restarts().collect();
    let expected: Vec<_> = expected.filter(|c| !needs_restart.contains(c)).collect();
    assert_eq!(applied.iter().collect::<Vec<_>>(), expected, "{name}");
    // What is left are the changes that need one.
    let left = Difference::between(&partial, after).changes;
    assert_eq!(left.len(), needs_restart.len(), "{name}");
    if needs_restart.is_empty() {
        assert_eq!(config, *after_config, "{name}");
    }
}

#[test]
fn every_key_has_an_effect() {
    let mut out = String::new();
    let mut undecided = Vec::new();
    for ((table, key), effects) in effects() {
        let words: Vec<_> = effects
            .iter()
            .map(|effect| effect.map_or("undecided", |effect| effect.words()))
            .collect();
        if effects.contains(&None) {
            undecided.push(format!("{table} {key}"));
        }
        let _ = writeln!(out, "{table} {key}: {}", words.join(", "));
    }
    assert!(undecided.is_empty(), "undecided: {undecided:?}");
    compare("effects.txt", &out);
}
