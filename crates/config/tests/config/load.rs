//! Files as the file system has them.

#![allow(
    clippy::disallowed_methods,
    reason = "a test reads its cases from files"
)]

use std::fs;
use std::path::PathBuf;

use crosstie_config::{EMBEDDED, load};

struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// What is said of a file with this name and these bytes; nothing if it loads.
fn check(name: &str, bytes: &[u8], expected: &str) {
    let folder = format!("crosstie-config-{}-{name}", std::process::id());
    let folder = Folder(std::env::temp_dir().join(folder));
    fs::create_dir_all(&folder.0).expect("a folder can be made");
    let path = folder.0.join(name);
    fs::write(&path, bytes).expect("a file can be written");
    let said = load(&path, &|_| None).map_or_else(|failure| failure.to_string(), |_| String::new());
    let said = said.replace(&format!("{}/", folder.0.display()), "");
    assert_eq!(said, expected, "{name}");
}

#[test]
fn files_are_read_by_their_names() {
    let embedded = EMBEDDED.as_bytes();
    check("good.json", embedded, "");
    check("good.yaml", embedded, "");
    check("good.yml", embedded, "");
    check("marked.json", &[b"\xef\xbb\xbf", embedded].concat(), "");
    check(
        "node.conf",
        embedded,
        "cannot tell the format of node.conf: its name must end in .json, .yaml or .yml",
    );
    check(
        "binary.json",
        b"{\n  \"$schema\": \"\xff\"}",
        "binary.json:2:15: the file is not UTF-8 here\n    2 |   \"$schema\": \"\n      |               ^",
    );
    check(
        "large.yaml",
        &vec![b' '; (4 << 20) + 1],
        "cannot read large.yaml: it is larger than 4194304 bytes",
    );
}

#[test]
fn a_secret_is_a_files_first_line() {
    for (secret, expected) in [
        ("hunter2\nmore", ""),
        ("hunter2\r\n", ""),
        ("", "its first line is empty"),
        ("\nhunter2", "its first line is empty"),
        (&"x".repeat(65_537), "it is larger than 65536 bytes"),
    ] {
        let name = format!("crosstie-config-{}-secret", std::process::id());
        let folder = Folder(std::env::temp_dir().join(name));
        fs::create_dir_all(&folder.0).expect("a folder can be made");
        let principals = r#"{"joe": {"ticket": {"file": "joes.ticket"}, "role": "anonymous"}}"#;
        let auth = format!(r#"{{"ticket": {{"type": "static", "principals": {principals}}}}}"#);
        let transport = format!(
            r#"{{"type": "rawsocket", "endpoint": {{"type": "unix", "path": "s"}}, "auth": {auth}}}"#
        );
        let realm = r#"{"name": "realm1", "roles": [{"name": "anonymous"}]}"#;
        let worker =
            format!(r#"{{"type": "router", "realms": [{realm}], "transports": [{transport}]}}"#);
        let path = folder.0.join("config.json");
        let text = format!(r#"{{"version": 2, "workers": [{worker}]}}"#);
        fs::write(&path, text).expect("a file can be written");
        fs::write(folder.0.join("joes.ticket"), secret).expect("a file can be written");
        let said = load(&path, &|_| None).map_or_else(|e| e.to_string(), |_| String::new());
        let wanted = match expected {
            "" => String::new(),
            _ => format!("cannot be read from \"joes.ticket\": {expected}"),
        };
        assert!(
            said.contains(&wanted) && said.is_empty() == expected.is_empty(),
            "{said}"
        );
        assert!(!said.contains("hunter2"), "{said}");
    }
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let failure = load("nowhere/node.json".as_ref(), &|_| None).expect_err("there is no such file");
    let said = failure.to_string();
    assert!(
        said.starts_with("cannot read nowhere/node.json: "),
        "{said}"
    );
}
