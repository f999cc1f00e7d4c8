//! Checks that components in Python can run at all, before anything is started: a node reports that only in its log.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::original::Original;
use crate::error::BenchError;
use crate::peer::crossbar::find_on_path;

/// A container's imports.
const IMPORTS: &str = "import autobahn.twisted.wamp, crosstie.container";

/// Refuses an interpreter without a container's imports.
pub(super) fn check(
    original: &Original,
    named: Option<&Path>,
    executable: &Path,
) -> Result<(), BenchError> {
    let refuse = |why: String| {
        Err(BenchError::Options(format!(
            "{}: its components are in Python, and {why}; name an interpreter by --python, or \
             measure the example that needs none by --native",
            original.name
        )))
    };
    let Some(python) = interpreter(original, named, executable) else {
        return refuse("there is no python3".to_owned());
    };
    let output = Command::new(&python)
        .args(["-c", IMPORTS])
        .stdin(Stdio::null())
        .output();
    let at = python.display();
    match output {
        Err(error) => refuse(format!("{at} does not run: {error}")),
        Ok(output) if !output.status.success() => {
            let said = String::from_utf8_lossy(&output.stderr);
            let last = said.lines().rfind(|line| !line.trim().is_empty());
            refuse(format!(
                "{at} cannot import what a container needs ({}); `pip install` the project's \
                 python directory",
                last.unwrap_or("it does not say why")
            ))
        }
        Ok(_) => Ok(()),
    }
}

/// The node's choice: as configured, beside its own program, or on `PATH`.
fn interpreter(original: &Original, named: Option<&Path>, executable: &Path) -> Option<PathBuf> {
    let configured = || original.python().map(PathBuf::from);
    let beside = || {
        let beside = executable.parent()?.join("python3");
        beside.is_file().then_some(beside)
    };
    let named = named.map(Path::to_owned);
    named
        .or_else(configured)
        .or_else(beside)
        .or_else(|| find_on_path("python3"))
}
