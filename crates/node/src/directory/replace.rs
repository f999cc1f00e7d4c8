//! Writes a file completely or not at all.

use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Writes a temporary file in the same directory, syncs it, and renames it.
pub(super) fn write(path: &Path, text: &str, mode: u32) -> io::Result<()> {
    let directory = path.parent().unwrap_or_else(|| Path::new("."));
    let mut file = tempfile::Builder::new()
        .prefix(".crosstie-")
        .permissions(Permissions::from_mode(mode))
        .tempfile_in(directory)?;
    file.write_all(text.as_bytes())?;
    // The process's umask may have removed intended permissions.
    file.as_file()
        .set_permissions(Permissions::from_mode(mode))?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|e| e.error)?;
    // Makes the name durable; not every file system supports that.
    let _ = File::open(directory).and_then(|directory| directory.sync_all());
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn all_or_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("file");
        for text in ["one, and longer", "two"] {
            write(&path, text, 0o640).expect("room");
            assert_eq!(fs::read_to_string(&path).expect("a file"), text);
        }
        let mode = fs::metadata(&path).expect("a file").permissions().mode();
        assert_eq!(mode & 0o7777, 0o640);

        fs::create_dir(folder.path().join("taken")).expect("a folder");
        write(&folder.path().join("taken"), "text", 0o600).expect_err("a folder is there");
        let names = fs::read_dir(folder.path()).expect("a folder");
        assert_eq!(names.count(), 2, "nothing half is left");
    }
}
