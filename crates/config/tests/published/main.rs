//! What is published about the configuration says what the tables say: the JSON Schema, and the
//! reference in `docs/configuration` with its examples.
//!
//! `BLESS=1 cargo test -p crosstie-config` writes both anew.

#![allow(
    clippy::disallowed_methods,
    reason = "a test reads its cases from files"
)]

mod pages;
mod reference;
mod schema;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crosstie_config::catalogue::refused::KEYS;
use crosstie_config::{EMBEDDED, Format, Problem, Source, parse, render};

const BEGIN: &str = "<!-- begin: written by the tests of crates/config from its tables -->\n";
const PAGES: &str = "../../docs/configuration";
const PAGE_BYTES_MAX: u64 = 30_000;
const END: &str = "<!-- end -->\n";

fn here(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn compare(path: &Path, wanted: &str) {
    if std::env::var_os("BLESS").is_some() {
        fs::write(path, wanted).expect("the file can be written");
    }
    let found = fs::read_to_string(path).expect("the file is there");
    assert!(
        found == wanted,
        "{} is not what the tables say; run with BLESS=1",
        path.display()
    );
}

#[test]
fn the_schema_is_made_from_the_tables() {
    compare(&here("schema/crosstie.schema.json"), &schema::schema());
}

/// Puts `tables` between the markers of the page at `path`, or compares.
fn compare_tables(path: &Path, tables: &str) {
    let text = fs::read_to_string(path).expect("the page is there");
    let (before, rest) = text.split_once(BEGIN).expect("the tables begin");
    let (_, after) = rest.split_once(END).expect("the tables end");
    compare(path, &format!("{before}{BEGIN}{tables}{END}{after}"));
}

#[test]
fn the_reference_is_made_from_the_tables() {
    for (file, tables) in reference::reference() {
        compare_tables(&here(PAGES).join(file), &tables);
    }
    let former = here("../../docs/configuration.md");
    compare_tables(&former, &reference::former_sections());
}

#[test]
fn no_page_of_the_reference_is_longer_than_thirty_kilobytes() {
    for page in pages() {
        let bytes = fs::metadata(&page).expect("the page is there").len();
        assert!(bytes <= PAGE_BYTES_MAX, "{}: {bytes} bytes", page.display());
    }
}

/// Looks for each key in the tables of all pages, by the heading above it.
#[test]
fn every_key_is_on_one_page() {
    let mut places: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
    for page in pages() {
        let text = fs::read_to_string(&page).expect("the page is there");
        let mut heading = "";
        for line in text.lines() {
            if let Some(found) = line.strip_prefix("## `") {
                heading = found.trim_end_matches('`');
            } else if let Some(row) = line.strip_prefix("| `")
                && let Some((key, _)) = row.split_once('`')
            {
                let place = format!("{heading} {key}");
                places.entry(place).or_default().push(page.clone());
            }
        }
    }
    let keys = reference::keys();
    assert!(keys.len() > 500, "{} keys", keys.len());
    for key in keys {
        let found = places.get(&key).map_or(0, Vec::len);
        assert_eq!(found, 1, "{key}: {:?}", places.get(&key));
    }
}

#[test]
fn the_examples_of_the_documentation_load() {
    let mut count = 0;
    for path in pages() {
        let text = fs::read_to_string(path).expect("the page is there");
        for (fence, format) in [("```json\n", Format::Json), ("```yaml\n", Format::Yaml)] {
            for block in text.split(fence).skip(1) {
                let (text, _) = block.split_once("```").expect("the block ends");
                loads(text, format);
                count += 1;
            }
        }
    }
    assert!(count >= 4, "{count} examples");
}

/// Every page below `docs/configuration`, and the one that led to all of this before.
fn pages() -> Vec<PathBuf> {
    let entries = fs::read_dir(here(PAGES)).expect("a readable folder");
    let mut pages: Vec<PathBuf> = entries
        .map(|entry| entry.expect("an entry").path())
        .collect();
    pages.push(here("../../docs/configuration.md"));
    pages
}

/// They stand as the documents have them, of which one names no version.
#[test]
fn the_examples_load_as_they_are() {
    let folders = fs::read_dir(here("../../examples")).expect("there are examples");
    let mut count = 0;
    for folder in folders {
        let folder = folder.expect("a folder").path();
        let places = ["config.json", ".crossbar/config.json"].map(|name| folder.join(name));
        let Some(path) = places.iter().find(|path| path.exists()) else {
            continue;
        };
        let loaded = crosstie_config::load(path, &|_| None);
        let loaded = loaded.unwrap_or_else(|failure| panic!("{failure}"));
        for warning in loaded
            .warnings
            .iter()
            .filter(|warning| !is_of_exposure(warning))
        {
            let expected = "\"version\" is missing and taken to be 2";
            assert_eq!(warning.message, expected, "{}", path.display());
        }
        assert!(!loaded.config.workers.is_empty(), "{}", path.display());
        count += 1;
    }
    assert!(count >= 2, "{count} examples");
}

#[test]
fn the_embedded_configuration_loads() {
    loads(EMBEDDED, Format::Json);
    crosstie_config::Config::embedded_default();
}

fn loads(text: &str, format: Format) {
    let source = Source::new("example".into(), text.into());
    let environment = |name: &str| match name {
        "PORT" => Some("8080".to_owned()),
        "NOVA_PASSWORD" => Some("s3cret".to_owned()),
        _ => None,
    };
    let mut problems =
        parse(&source, format, &environment).map_or_else(|p| p, |(_, warnings)| warnings);
    problems.retain(|problem| !is_of_exposure(problem));
    assert!(problems.is_empty(), "{}", render(&problems, &source));
}

/// Whether it says that everybody gets in, which is what examples are for.
fn is_of_exposure(problem: &Problem) -> bool {
    problem.message.starts_with("whoever reaches this machine")
}

/// A place that no table has would keep its reasons to itself.
#[test]
fn everything_refused_is_refused_somewhere() {
    let paths: Vec<&str> = reference::tables()
        .iter()
        .map(|(table, _)| table.path)
        .collect();
    for place in KEYS {
        assert!(paths.contains(&place.path), "{}", place.path);
    }
}
