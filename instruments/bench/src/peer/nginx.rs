//! nginx, configured with one directory of files only.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::crossbar::find_on_path;
use crate::error::BenchError;
use crate::subject::ServerProcess;

pub(crate) const INSTALLATION: &str = "apt-get install nginx-light";

/// Debian's place, which is on root's `PATH` alone.
const PROGRAM: &str = "/usr/sbin/nginx";

pub(crate) fn find() -> Option<PathBuf> {
    let usual = || Some(PathBuf::from(PROGRAM)).filter(|path| path.is_file());
    find_on_path("nginx").or_else(usual)
}

/// Its own version text; empty if it prints none.
pub(crate) fn version(nginx: &Path) -> String {
    let output = Command::new(nginx).arg("-v").output();
    let text = output.map(|output| output.stderr).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let version = text.trim().rsplit_once('/');
    version.map_or_else(String::new, |(_, version)| version.to_owned())
}

/// Starts it with a directory of its own; it may not listen yet.
pub(crate) fn start(
    mut command: Command,
    directory: &Path,
    files: &Path,
    address: SocketAddr,
) -> Result<ServerProcess, BenchError> {
    let path = directory.join("nginx.conf");
    fs::write(&path, configuration(directory, files, address))?;
    command.args(["-e", "stderr", "-p"]).arg(directory);
    command.arg("-c").arg(&path);
    ServerProcess::spawn_logged(command, "nginx", directory.join("nginx.log"))
}

/// One process, which is the worker: a killed master would leave its workers behind.
fn configuration(directory: &Path, files: &Path, address: SocketAddr) -> String {
    let (directory, files) = (directory.display(), files.display());
    let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
    let temporary = temporary.map(|of| format!("    {of}_temp_path \"{directory}/{of}\";\n"));
    let temporary = temporary.concat();
    format!(
        "daemon off;\n\
         master_process off;\n\
         worker_processes 1;\n\
         pid \"{directory}/nginx.pid\";\n\
         error_log stderr crit;\n\
         events {{ worker_connections 4096; }}\n\
         http {{\n{temporary}    \
             access_log off;\n    \
             sendfile on;\n    \
             tcp_nopush on;\n    \
             keepalive_requests 1000000000;\n    \
             keepalive_timeout 3600s;\n    \
             server {{ listen {address}; root \"{files}\"; }}\n\
         }}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_it_writes_is_in_its_directory() {
        let (directory, files) = (Path::new("/d"), Path::new("/d/files"));
        let text = configuration(directory, files, ([127, 0, 0, 1], 9000).into());
        assert!(text.contains("listen 127.0.0.1:9000; root \"/d/files\";"));
        assert!(text.contains("\n    scgi_temp_path \"/d/scgi\";\n    access_log off;\n"));
        assert!(text.ends_with("}\n"));
    }
}
