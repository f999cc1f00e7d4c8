//! Files in the other language say the same, and lead to the same model.

#![allow(
    clippy::disallowed_methods,
    reason = "a test reads its cases from files"
)]

use std::fs;
use std::path::Path;

use crosstie_config::{Format, Problem, Source, parse};

fn convert(source: &Source, from: Format, to: Format) -> Result<String, Vec<Problem>> {
    crosstie_config::convert(source, from, to).map(|(text, _)| text)
}

fn source(text: &str) -> Source {
    Source::new("file".into(), text.into())
}

fn check(text: &str, from: Format, to: Format, expected: &str) {
    let converted = convert(&source(text), from, to);
    let said = converted.unwrap_or_else(|problems| {
        let messages = problems.iter().map(|problem| problem.message.clone());
        messages.collect::<Vec<_>>().join("\n")
    });
    assert_eq!(said, expected);
}

#[test]
fn values_are_written_so_that_they_stay_what_they_are() {
    check(
        r#"{"b": {"z": [], "a": {}}, "a": [1, {"x": [2, [3]], "y": "yes"}], "": null, "list": ["a b", "1", 1.5, true]}"#,
        Format::Json,
        Format::Yaml,
        "b:\n  z: []\n  a: {}\na:\n  - 1\n  - x:\n      - 2\n      - [3]\n    \"y\": \"yes\"\n\"\": null\nlist: [a b, \"1\", 1.5, true]\n",
    );
    check(
        "b: {z: 0x10}\na: &x [No, 0123, ~, '<<', a: b]\nc: *x # comment\n",
        Format::Yaml,
        Format::Json,
        "{\n  \"b\": {\n    \"z\": 16\n  },\n  \"a\": [\n    false,\n    \"0123\",\n    null,\n    \"<<\",\n    {\n      \"a\": \"b\"\n    }\n  ],\n  \"c\": [\n    false,\n    \"0123\",\n    null,\n    \"<<\",\n    {\n      \"a\": \"b\"\n    }\n  ]\n}\n",
    );
    check("[1]", Format::Json, Format::Json, "[\n  1\n]\n");
}

#[test]
fn what_cannot_be_converted_is_told() {
    check(
        "{",
        Format::Json,
        Format::Yaml,
        "not JSON: Unterminated object",
    );
    check(
        "a: 1\na: 2\n",
        Format::Yaml,
        Format::Json,
        "the key \"a\" is given twice",
    );
    check(
        r#"{"a": 1e999}"#,
        Format::Json,
        Format::Yaml,
        "this cannot be said in YAML",
    );
    check(
        "a: 1e999",
        Format::Yaml,
        Format::Json,
        "this cannot be said in JSON",
    );
}

/// Texts that YAML takes for something else, or ends too early.
const TEXTS: &[&str] = &[
    "",
    " ",
    "a ",
    " a",
    "~",
    "null",
    "Yes",
    "off",
    "y",
    "1",
    "-1",
    "1.5",
    ".5",
    ".inf",
    "0x1f",
    "1_000",
    "1:30",
    "2026-01-01",
    "-",
    "- a",
    "?",
    ": ",
    "a: b",
    "a #b",
    "#",
    "&a",
    "*a",
    "!a",
    "|",
    ">",
    "%a",
    "@a",
    "`a",
    "'a'",
    "\"a\"",
    "[a]",
    "{a}",
    "a,b",
    "<<",
    "=",
    "---",
    "...",
    "a\nb",
    "a\tb",
    "a\r\nb",
    "\u{0}",
    "\u{7f}",
    "\u{85}",
    "\u{a0}",
    "\u{2028}",
    "\u{feff}",
    "\u{fffe}",
    "é",
    "𝄞",
    "$HOME",
    "../a/b.c",
    "ws://localhost:8080/ws",
    "\\",
    "\\n",
];

#[test]
fn every_text_survives() {
    let mut object = serde_json::Map::new();
    for &text in TEXTS {
        object.insert(text.into(), serde_json::json!([text, {text: text}]));
    }
    let json = format!("{:#}\n", serde_json::Value::Object(object));
    let yaml = convert(&source(&json), Format::Json, Format::Yaml).expect("it can be said in YAML");
    let back = convert(&source(&yaml), Format::Yaml, Format::Json).expect("and in JSON again");
    assert_eq!(back, json);
}

#[test]
fn good_files_lead_to_the_same_model() {
    let environment = |name: &str| match name {
        "PORT" => Some("9001".to_owned()),
        "INTERFACE" => Some("127.0.0.1".to_owned()),
        "OFF" => Some("yes".to_owned()),
        "EMPTY" => Some(String::new()),
        _ => None,
    };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let mut count = 0;
    for file in fs::read_dir(folder).expect("there are cases") {
        let path = file.expect("a file").path();
        let (from, to) = match path.extension().and_then(|extension| extension.to_str()) {
            Some("json") => (Format::Json, Format::Yaml),
            Some("yaml") => (Format::Yaml, Format::Json),
            _ => continue,
        };
        let text = source(&fs::read_to_string(&path).expect("a case is text"));
        let Ok((config, _)) = parse(&text, from, &environment) else {
            continue;
        };
        let there = convert(&text, from, to).expect("a good file can be converted");
        let back = convert(&source(&there), to, from).expect("and back");
        for (text, format) in [(there, to), (back, from)] {
            let again = parse(&source(&text), format, &environment);
            let (again, _) = again.expect("what came out is good too");
            assert_eq!(again, config, "{}", path.display());
        }
        count += 1;
    }
    assert!(count >= 6, "{count} good files");
}

#[test]
fn what_is_of_version_1_is_written_in_version_2() {
    let old = r#"{"workers": [{"type": "router", "realms": [{"name": "realm1", "roles": [
        {"name": "anonymous", "permissions": [{"uri": "com.*", "call": true, "publish": false}]}]}]}]}"#;
    let (new, warnings) = crosstie_config::convert(&source(old), Format::Json, Format::Json)
        .expect("what of it can be said");
    let json: serde_json::Value = serde_json::from_str(&new).expect("JSON");
    assert_eq!(json["version"], 2);
    let permission = &json["workers"][0]["realms"][0]["roles"][0]["permissions"][0];
    let expected = serde_json::json!({"uri": "com.*", "allow": {"call": true, "publish": false}});
    assert_eq!(*permission, expected);
    assert_eq!(warnings.len(), 1);
    let again = crosstie_config::convert(&source(&new), Format::Json, Format::Json);
    assert_eq!(again, Ok((new, Vec::new())));
}
