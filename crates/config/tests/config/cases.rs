//! Whole files with what must be said of them.
//!
//! Beside each `NAME.json` or `NAME.yaml` stands `NAME.….expect`: the problems as they are
//! shown, then `loaded` if the file can be used. Where there is a `NAME.….model` too, it is the
//! configuration that came out. `BLESS=1 cargo test -p crosstie-config` writes what is there
//! anew; reading the difference is then the test.

#![allow(
    clippy::disallowed_methods,
    reason = "a test reads its cases from files"
)]

use std::fs;
use std::path::{Path, PathBuf};

use crosstie_config::{Format, Source, parse, render};

fn environment(name: &str) -> Option<String> {
    match name {
        "PORT" => Some("9001".into()),
        "NOT_A_PORT" => Some("http".into()),
        "INTERFACE" => Some("127.0.0.1".into()),
        "OFF" => Some("yes".into()),
        "EMPTY" => Some(String::new()),
        _ => None,
    }
}

fn check(path: &Path) -> Vec<String> {
    let name = path.file_name().and_then(|name| name.to_str());
    let name = name.expect("cases have plain names");
    let source = Source::new(
        name.into(),
        fs::read_to_string(path).expect("a case is text"),
    );
    let format = if name.ends_with(".json") {
        Format::Json
    } else {
        Format::Yaml
    };
    let (said, model) = match parse(&source, format, &environment) {
        Ok((config, warnings)) => (
            render(&warnings, &source) + "loaded\n",
            format!("{config:#?}\n"),
        ),
        Err(problems) => (render(&problems, &source), String::new()),
    };
    let mut failures = Vec::new();
    let mut compare = |extension: &str, found: &str, always: bool| {
        let path = path.with_file_name(format!("{name}.{extension}"));
        if !always && !path.exists() {
            return;
        }
        if std::env::var_os("BLESS").is_some() {
            fs::write(&path, found).expect("the outcome can be written");
        }
        let wanted = fs::read_to_string(&path).unwrap_or_default();
        if wanted != found {
            failures.push(format!(
                "{}\n--- wanted\n{wanted}--- found\n{found}",
                path.display()
            ));
        }
    };
    compare("expect", &said, true);
    compare("model", &model, false);
    failures
}

#[test]
fn every_file_is_said_of_what_is_expected() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let files = fs::read_dir(folder).expect("there are cases");
    let mut files: Vec<PathBuf> = files.filter_map(|file| Some(file.ok()?.path())).collect();
    files.retain(|path| {
        let extension = path.extension().and_then(|extension| extension.to_str());
        matches!(extension, Some("json" | "yaml"))
    });
    files.sort();
    assert!(files.len() > 10, "the cases are there");
    let failures: Vec<String> = files.iter().flat_map(|path| check(path)).collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
