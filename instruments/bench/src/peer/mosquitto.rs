//! mosquitto: Debian's MQTT broker, with one configuration for all cases.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::crossbar::find_on_path;
use crate::error::BenchError;
use crate::subject::ServerProcess;

pub(crate) const INSTALLATION: &str = "apt-get install mosquitto";

/// Debian's place, which is on root's `PATH` alone.
const PROGRAM: &str = "/usr/sbin/mosquitto";

pub(crate) fn find() -> Option<PathBuf> {
    let usual = || Some(PathBuf::from(PROGRAM)).filter(|path| path.is_file());
    find_on_path("mosquitto").or_else(usual)
}

/// The version in the first line of its help.
pub(crate) fn version(mosquitto: &Path) -> String {
    let output = Command::new(mosquitto).arg("-h").output();
    let text = output.map(|output| output.stdout).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let line = text.lines().next().unwrap_or_default();
    let version = line.rsplit(' ').next().unwrap_or_default();
    version.to_owned()
}

/// Starts it with a directory of its own, a plain listener and one with TLS; it may not listen yet.
pub(crate) fn start(
    mut command: Command,
    directory: &Path,
    plain: SocketAddr,
    tls: (SocketAddr, &Path, &Path),
) -> Result<ServerProcess, BenchError> {
    fs::create_dir_all(directory)?;
    let path = directory.join("mosquitto.conf");
    fs::write(&path, configuration(directory, plain, tls))?;
    command.arg("-c").arg(&path);
    ServerProcess::spawn_logged(command, "mosquitto", directory.join("mosquitto.log"))
}

/// Its defaults, except: no message is dropped and none has to wait for 20 before it, Nagle's algorithm is off as
/// everywhere here, and sessions are written to a file, as it does that: at the end and every half hour, without a
/// sync.
fn configuration(
    directory: &Path,
    plain: SocketAddr,
    (tls, certificate, key): (SocketAddr, &Path, &Path),
) -> String {
    let listener = |address: SocketAddr| format!("listener {} {}\n", address.port(), address.ip());
    format!(
        "user root\n\
         allow_anonymous true\n\
         set_tcp_nodelay true\n\
         max_inflight_messages 65535\n\
         max_queued_messages 0\n\
         persistence true\n\
         persistence_location {}/\n\
         log_dest stderr\n\
         log_type error\n\
         {}{}\
         certfile {}\n\
         keyfile {}\n",
        directory.display(),
        listener(plain),
        listener(tls),
        certificate.display(),
        key.display(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_it_writes_is_in_its_directory() {
        let address = |port| SocketAddr::from(([127, 0, 0, 1], port));
        let tls = (address(2), Path::new("/d/c"), Path::new("/d/k"));
        let text = configuration(Path::new("/d"), address(1), tls);
        assert!(text.contains("persistence_location /d/\n"));
        assert!(text.ends_with(
            "listener 1 127.0.0.1\nlistener 2 127.0.0.1\ncertfile /d/c\nkeyfile /d/k\n"
        ));
    }
}
