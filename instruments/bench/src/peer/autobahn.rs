//! A WebSocket echo server on Autobahn for Python, which the source document measured.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::process::Place;
use crate::subject::{guarded, names};

/// A WebSocket echo server that the bench can start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EchoPeer {
    Autobahn,
}

impl EchoPeer {
    pub(crate) fn installation(self) -> &'static str {
        "pip install autobahn, into the python3 on PATH or the one of --peer-python"
    }

    /// The command that starts it at an address, and its version; `None` if no Python has it.
    pub(crate) fn command(
        self,
        python: Option<&Path>,
        address: SocketAddr,
        place: &Place,
        directory: &Path,
        executable: &Path,
    ) -> io::Result<Option<(Command, String)>> {
        let python = python.map_or_else(|| PathBuf::from("python3"), Path::to_owned);
        let Some(version) = version(&python) else {
            return Ok(None);
        };
        let script = directory.join("autobahn_echo.py");
        fs::write(&script, include_str!("autobahn_echo.py"))?;
        let mut command = guarded(executable, place, &python);
        command.arg(&script);
        command.args([address.ip().to_string(), address.port().to_string()]);
        Ok(Some((command, version)))
    }
}

/// Python takes a while to import it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Its version and Python's; `None` if that Python does not have it.
fn version(python: &Path) -> Option<String> {
    let say = "import autobahn, platform; \
               print(autobahn.__version__, platform.python_implementation(), \
               platform.python_version())";
    let output = Command::new(python).args(["-c", say]).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().last().unwrap_or_default().trim();
    (output.status.success() && !line.is_empty()).then(|| line.to_owned())
}

names! {
    EchoPeer { Autobahn = "autobahn" }
    "the peer that can be started is autobahn"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_python_without_it_is_absent() {
        assert_eq!(version(Path::new("/nonexistent/python")), None);
        assert_eq!(version(Path::new("false")), None);
    }
}
