//! Which directory is the node's, and which file its configuration.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Where nothing is said, the first of these.
pub const CONFIG_NAMES: [&str; 3] = ["config.json", "config.yaml", "config.yml"];
/// Where nothing is said, in this order.
const VARIABLES: [&str; 2] = ["CROSSTIE_DIR", "CROSSBAR_DIR"];
const DOT_DIRECTORY: &str = ".crossbar";
/// Of a configuration in the current directory, to see whether it is one of a node.
const LOOKED_AT_BYTES_MAX: u64 = 1 << 20;

/// A node's directory and its configuration file, both absolute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeDirectory {
    pub path: PathBuf,
    pub config: PathBuf,
}

/// Why there is no node directory, where one was asked for.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FindError {
    #[error("node directory '{}'{} is not there; `crosstie init` makes one", .path.display(), said_by(.variable.as_deref()))]
    NoDirectory {
        path: PathBuf,
        variable: Option<String>,
    },
    #[error("'{}' is no node's directory, but has one in it: name '{}'", .path.display(), .within.display())]
    OneAbove { path: PathBuf, within: PathBuf },
    #[error("no configuration in node directory '{}': looked for {}", .path.display(), CONFIG_NAMES.join(", "))]
    NoConfig { path: PathBuf },
    #[error("no configuration '{}': looked for {}", .name.display(), listed(.looked_for))]
    NoSuchConfig {
        name: PathBuf,
        looked_for: Vec<PathBuf>,
    },
    #[error("no node directory: expected --cbdir, ${}, a folder '{DOT_DIRECTORY}' or a node's configuration in '{}'", VARIABLES.join(", $"), .current.display())]
    Nowhere { current: PathBuf },
}

fn said_by(variable: Option<&str>) -> String {
    variable.map_or_else(String::new, |name| format!(" (from ${name})"))
}

fn listed(paths: &[PathBuf]) -> String {
    let quoted: Vec<_> = paths
        .iter()
        .map(|path| format!("'{}'", path.display()))
        .collect();
    quoted.join(" and ")
}

impl NodeDirectory {
    /// The directory that a node is to be started in; none where nothing asks for one.
    ///
    /// `directory` and `config` are what the command line says, `current` is an absolute path.
    pub fn find(
        directory: Option<&Path>,
        config: Option<&Path>,
        current: &Path,
        variable: &dyn Fn(&str) -> Option<OsString>,
    ) -> Result<Option<Self>, FindError> {
        if let Some(path) = said(directory, current, variable)? {
            let config = match config {
                Some(name) => named_config(name, &[&path, current])?,
                None => default_config(&path)
                    .ok_or_else(|| FindError::NoConfig { path: path.clone() })?,
            };
            return Ok(Some(Self { path, config }));
        }
        let dot_directory = current.join(DOT_DIRECTORY);
        if let Some(name) = config {
            let config = named_config(name, &[current, &dot_directory])?;
            let path = config.parent().unwrap_or(current).to_owned();
            return Ok(Some(Self { path, config }));
        }
        if dot_directory.is_dir() {
            return match default_config(&dot_directory) {
                Some(config) => Ok(Some(Self {
                    path: dot_directory,
                    config,
                })),
                None => Err(FindError::NoConfig {
                    path: dot_directory,
                }),
            };
        }
        let config = default_config(current).filter(|config| speaks_of_workers(config));
        Ok(config.map(|config| Self {
            path: current.to_owned(),
            config,
        }))
    }

    /// The directory that a node may run in, with or without a configuration: what is asked about
    /// it later needs none.
    pub fn locate(
        directory: Option<&Path>,
        current: &Path,
        variable: &dyn Fn(&str) -> Option<OsString>,
    ) -> Result<PathBuf, FindError> {
        if let Some(path) = said(directory, current, variable)? {
            // Not taken instead of what was named; but to say that no node runs there would mislead.
            let within = path.join(DOT_DIRECTORY);
            return if within.is_dir() && !is_one(&path) {
                Err(FindError::OneAbove { path, within })
            } else {
                Ok(path)
            };
        }
        let dot_directory = current.join(DOT_DIRECTORY);
        if dot_directory.is_dir() {
            return Ok(dot_directory);
        }
        is_one(current)
            .then(|| current.to_owned())
            .ok_or_else(|| FindError::Nowhere {
                current: current.to_owned(),
            })
    }
}

/// Whether there is anything of a node's in a directory.
fn is_one(directory: &Path) -> bool {
    directory.join(super::PID_FILE).exists()
        || directory.join(super::key::PRIVATE_FILE).exists()
        || default_config(directory).is_some_and(|config| speaks_of_workers(&config))
}

/// The directory that the command line or the environment names.
fn said(
    directory: Option<&Path>,
    current: &Path,
    variable: &dyn Fn(&str) -> Option<OsString>,
) -> Result<Option<PathBuf>, FindError> {
    let from_environment = || {
        let set = |name: &&str| variable(name).filter(|value| !value.is_empty());
        let name = VARIABLES.iter().find(|name| set(name).is_some())?;
        Some((PathBuf::from(set(name)?), Some((*name).to_owned())))
    };
    let said = directory.map(|path| (path.to_owned(), None));
    let Some((path, variable)) = said.or_else(from_environment) else {
        return Ok(None);
    };
    let path = absolute(&current.join(path));
    if !path.is_dir() {
        return Err(FindError::NoDirectory { path, variable });
    }
    Ok(Some(path))
}

/// Without `.` in it; `..` stays, because what it means depends on links.
fn absolute(path: &Path) -> PathBuf {
    // Fails for an empty path only.
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

fn named_config(name: &Path, places: &[&Path]) -> Result<PathBuf, FindError> {
    let mut looked_for: Vec<_> = places
        .iter()
        .map(|place| absolute(&place.join(name)))
        .collect();
    looked_for.dedup();
    match looked_for.iter().find(|path| path.is_file()) {
        Some(path) => Ok(path.clone()),
        None => Err(FindError::NoSuchConfig {
            name: name.to_owned(),
            looked_for,
        }),
    }
}

fn default_config(directory: &Path) -> Option<PathBuf> {
    CONFIG_NAMES
        .iter()
        .map(|name| directory.join(OsStr::new(name)))
        .find(|path| path.is_file())
}

/// Many programs have a `config.json`.
fn speaks_of_workers(config: &Path) -> bool {
    let mut text = Vec::new();
    let read =
        File::open(config).and_then(|file| file.take(LOOKED_AT_BYTES_MAX).read_to_end(&mut text));
    read.is_ok() && String::from_utf8_lossy(&text).contains("workers")
}
