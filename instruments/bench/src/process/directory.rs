//! The directory of a run's sockets and node directories.

use std::fs;
use std::io;
use std::path::Path;

use tempfile::TempDir;

const PREFIX: &str = "crosstie-bench-";

/// A directory that is removed with the run. A killed run could not remove its own, so those of ended processes are
/// removed here.
pub(crate) fn create() -> io::Result<TempDir> {
    sweep(&std::env::temp_dir());
    let prefix = format!("{PREFIX}{}-", std::process::id());
    tempfile::Builder::new().prefix(&prefix).tempdir()
}

fn sweep(within: &Path) {
    for entry in fs::read_dir(within).into_iter().flatten().flatten() {
        let name = entry.file_name();
        if owner(&name.to_string_lossy()).is_some_and(|process| !is_alive(process)) {
            // Another user's cannot be removed, and need not be.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

fn owner(name: &str) -> Option<u32> {
    name.strip_prefix(PREFIX)?.split_once('-')?.0.parse().ok()
}

fn is_alive(process: u32) -> bool {
    Path::new(&format!("/proc/{process}")).exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_directories_of_the_gone_are_swept() {
        let within = tempfile::tempdir().unwrap();
        let own = format!("{PREFIX}{}-abc", std::process::id());
        // Beyond any limit of process ids.
        let gone = format!("{PREFIX}4294967295-abc");
        for name in [&own, &gone, "other", "crosstie-bench-x"] {
            fs::create_dir(within.path().join(name)).unwrap();
        }
        sweep(within.path());
        assert!(within.path().join(own).exists());
        assert!(!within.path().join(gone).exists());
        assert!(within.path().join("other").exists());
        assert!(within.path().join("crosstie-bench-x").exists());
    }
}
