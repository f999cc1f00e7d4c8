//! The house rules, as tests: what ARCHITECTURE.md and STYLE.md promise and a program can check.
//!
//! The rules are under `tests/`; here is what they share: the files of the workspace.

pub mod imports;
pub mod pages;
pub mod sentences;

use std::fs;
use std::path::{Path, PathBuf};

/// The workspace's root folder.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A member of the workspace.
#[derive(Debug)]
pub struct Member {
    /// The folder's name, which is the crate's name without the project's prefix.
    pub name: String,
    pub folder: PathBuf,
}

/// Every crate of the workspace.
pub fn members() -> Vec<Member> {
    let manifest = manifest(&root());
    let paths = manifest["workspace"]["members"]
        .as_array()
        .expect("members is a list");
    let member = |path: &toml::Value| {
        let path = Path::new(path.as_str().expect("a member is a path"));
        let name = path
            .file_name()
            .expect("a member has a name")
            .to_string_lossy();
        Member {
            name: name.into_owned(),
            folder: root().join(path),
        }
    };
    paths.iter().map(member).collect()
}

/// `Cargo.toml` in `folder`.
pub fn manifest(folder: &Path) -> toml::Table {
    let path = folder.join("Cargo.toml");
    let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    text.parse()
        .unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// A source file.
#[derive(Debug)]
pub struct Source {
    /// Relative to the workspace's root.
    pub path: String,
    pub text: String,
}

impl Source {
    /// The text before its tests, where it has some of its own.
    pub fn without_tests(&self) -> &str {
        self.text.split("#[cfg(test)]").next().unwrap_or_default()
    }
}

/// The Rust files below `folder`, tests and examples included.
pub fn sources(folder: &Path) -> Vec<Source> {
    let mut found = Vec::new();
    collect(folder, &mut found);
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

fn collect(folder: &Path, found: &mut Vec<Source>) {
    let entries = fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    for entry in entries {
        let path = entry.expect("a readable folder").path();
        if path.is_dir() {
            if path.file_name().is_some_and(|name| name != "target") {
                collect(&path, found);
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).expect("Rust source is UTF-8");
            let short = path.strip_prefix(root()).unwrap_or(&path);
            found.push(Source {
                path: short.display().to_string(),
                text,
            });
        }
    }
}
