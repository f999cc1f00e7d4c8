//! The files of a node on its embedded default, shared by the commands that start one and those that query one.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Its Unix socket, in the current directory, unless another is named.
pub(crate) const SOCKET: &str = "crosstie.sock";

/// The socket of the management realm beside a node's Unix socket: `crosstie-management.sock`.
pub(crate) fn management_socket(socket: &Path) -> PathBuf {
    let mut name: OsString = socket.file_stem().unwrap_or_default().to_owned();
    name.push("-management.sock");
    socket.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_nodes_management_socket_is_its_own() {
        let check = |socket: &str, expected: &str| {
            assert_eq!(management_socket(Path::new(socket)), Path::new(expected));
        };
        check(SOCKET, "crosstie-management.sock");
        check("/run/a/b.sock", "/run/a/b-management.sock");
        check("router", "router-management.sock");
    }
}
