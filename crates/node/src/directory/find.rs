//! Finds the node's directory and its configuration file.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The default names; the first existing one is used.
pub const CONFIG_NAMES: [&str; 3] = ["config.json", "config.yaml", "config.yml"];
/// Environment variables with the default directory, in order of precedence.
const VARIABLES: [&str; 2] = ["CROSSTIE_DIR", "CROSSBAR_DIR"];
const DOT_DIRECTORY: &str = ".crossbar";
/// Bytes of a configuration in the current directory that are checked for being a node's.
const LOOKED_AT_BYTES_MAX: u64 = 1 << 20;

/// A node's directory and its configuration file, both absolute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeDirectory {
    pub path: PathBuf,
    pub config: PathBuf,
}

/// Why a requested node directory was not found.
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
    /// The directory in which a node shall start; `None` if neither arguments nor surroundings ask for one.
    ///
    /// `directory` and `config` are command line arguments, `current` is an absolute path.
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

    /// The directory in which a node may run, with or without a configuration, which later requests do not need.
    pub fn locate(
        directory: Option<&Path>,
        current: &Path,
        variable: &dyn Fn(&str) -> Option<OsString>,
    ) -> Result<PathBuf, FindError> {
        if let Some(path) = said(directory, current, variable)? {
            // Not used instead of the named one; but a report that no node runs there would mislead.
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

/// Whether a directory contains any file of a node.
fn is_one(directory: &Path) -> bool {
    directory.join(super::PID_FILE).exists()
        || directory.join(super::key::PRIVATE_FILE).exists()
        || default_config(directory).is_some_and(|config| speaks_of_workers(&config))
}

/// The directory named on the command line or in the environment.
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

/// Removes `.` components; `..` stays, because its meaning depends on links.
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
