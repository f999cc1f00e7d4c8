//! mochi: an MQTT broker in Go, whose program has one listener for MQTT, and no files.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::crossbar::find_on_path;
use crate::error::BenchError;
use crate::subject::ServerProcess;

pub(crate) const INSTALLATION: &str =
    "go install github.com/mochi-mqtt/server/v2/cmd@v2.7.9, and name that program `mochi`";

/// The module in the program's build information, before its version.
const MODULE: &[u8] = b"\tgithub.com/mochi-mqtt/server/v2\tv";

pub(crate) fn find() -> Option<PathBuf> {
    find_on_path("mochi")
}

/// The version that Go has written into the program, which prints none; empty if there is none.
pub(crate) fn version(mochi: &Path) -> String {
    version_in(&fs::read(mochi).unwrap_or_default())
}

fn version_in(program: &[u8]) -> String {
    let mut places = program.windows(MODULE.len());
    let Some(at) = places.position(|window| window == MODULE) else {
        return String::new();
    };
    let version = &program[at + MODULE.len()..];
    let is_of_it = |octet: &&u8| octet.is_ascii_graphic();
    let version = version.iter().take(32).take_while(is_of_it);
    version.map(|octet| char::from(*octet)).collect()
}

/// Starts it with its defaults; it may not listen yet. Its other listeners, for WebSockets and for its state, get addresses of
/// their own.
pub(crate) fn start(
    mut command: Command,
    directory: &Path,
    [plain, websocket, state]: [SocketAddr; 3],
) -> Result<ServerProcess, BenchError> {
    fs::create_dir_all(directory)?;
    for (option, address) in [("-tcp", plain), ("-ws", websocket), ("-info", state)] {
        command.arg(option).arg(address.to_string());
    }
    ServerProcess::spawn_logged(command, "mochi", directory.join("mochi.log"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_in_the_program() {
        let program = b"\0path\tx/cmd\nmod\tgithub.com/mochi-mqtt/server/v2\tv2.7.9\th1:abc=\n";
        assert_eq!(version_in(program), "2.7.9");
        assert_eq!(version_in(b"github.com/mochi-mqtt/server/v2"), "");
    }
}
