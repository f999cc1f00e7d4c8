//! The place of the other program: beside this one, or on PATH.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The server, and its name as a package.
pub const SERVER: &str = "crosstie";

/// The instruments, and their name as a package.
pub const LABORATORY: &str = "crosstie-lab";

/// A program of the pair that is not installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missing(&'static str);

impl std::fmt::Display for Missing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self(name) = self;
        write!(
            f,
            "the program {name} is neither beside this one nor on PATH; it is in the package {name}"
        )
    }
}

impl std::error::Error for Missing {}

/// Finds the program of this name: first in the folder of this executable, then on PATH.
pub fn find(name: &'static str) -> Result<PathBuf, Missing> {
    let own = std::env::current_exe().ok();
    let folder = own.as_deref().and_then(Path::parent);
    find_in(name, folder, std::env::var_os("PATH").as_deref())
}

fn find_in(
    name: &'static str,
    folder: Option<&Path>,
    search_path: Option<&OsStr>,
) -> Result<PathBuf, Missing> {
    let on_path = std::env::split_paths(search_path.unwrap_or_default());
    let folders = folder.map(Path::to_owned).into_iter().chain(on_path);
    // A relative folder on PATH would mean another program in each directory.
    let mut programs = folders
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(name));
    programs.find(|path| is_program(path)).ok_or(Missing(name))
}

fn is_program(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};

    use tempfile::TempDir;

    use super::*;

    /// A folder that has the laboratory in it, with these permissions.
    fn folder(mode: u32) -> TempDir {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join(LABORATORY);
        fs::write(&path, "").unwrap();
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        folder
    }

    #[test]
    fn the_own_folder_comes_before_path() {
        let (here, elsewhere, text) = (folder(0o755), folder(0o755), folder(0o644));
        let find = |own: &TempDir, path: &[&TempDir]| {
            let path = std::env::join_paths(path.iter().map(|folder| folder.path())).unwrap();
            find_in(LABORATORY, Some(own.path()), Some(&path))
        };
        let in_folder = |folder: &TempDir| Ok(folder.path().join(LABORATORY));
        assert_eq!(find(&here, &[&elsewhere]), in_folder(&here));
        assert_eq!(find(&text, &[&text, &elsewhere]), in_folder(&elsewhere));
        assert_eq!(find(&text, &[&text]), Err(Missing(LABORATORY)));
    }

    #[test]
    fn a_relative_folder_on_path_is_not_searched() {
        let path = Some(OsStr::new(".:target/debug:"));
        assert_eq!(
            find_in("Cargo.toml", None, path),
            Err(Missing("Cargo.toml"))
        );
    }
}
