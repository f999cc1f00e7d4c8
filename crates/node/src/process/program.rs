//! Finds a program before it is started, as an error of `exec` names no file.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

/// The absolute path of a program: a name without a slash is searched on the search path, anything else is relative to
/// the directory. The error says what was searched, and where.
pub fn find_program(
    program: &Path,
    directory: &Path,
    search_path: Option<&OsStr>,
) -> io::Result<PathBuf> {
    if program.as_os_str().is_empty() {
        let text = "no program named: expected its name or its path";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    if program.as_os_str().as_bytes().contains(&b'/') {
        let path = std::path::absolute(directory.join(program))?;
        return match why_not(&path) {
            None => Ok(path),
            Some((kind, why)) => {
                let text = format!("program '{}' {why}", path.display());
                Err(io::Error::new(kind, text))
            }
        };
    }
    let search_path = search_path.unwrap_or_default();
    let mut kind = io::ErrorKind::NotFound;
    for place in std::env::split_paths(search_path) {
        // An empty entry of a PATH is the current directory.
        let path = std::path::absolute(directory.join(place).join(program))?;
        match why_not(&path) {
            None => return Ok(path),
            Some((io::ErrorKind::PermissionDenied, _)) => kind = io::ErrorKind::PermissionDenied,
            Some(_) => {}
        }
    }
    let what = if kind == io::ErrorKind::NotFound {
        "not found"
    } else {
        "found, but not executable,"
    };
    let text = format!(
        "program '{}' {what} on PATH '{}'",
        program.display(),
        search_path.display()
    );
    Err(io::Error::new(kind, text))
}

/// Why a path cannot be run, if so.
fn why_not(path: &Path) -> Option<(io::ErrorKind, &'static str)> {
    match path.metadata() {
        Err(e) if e.kind() == io::ErrorKind::PermissionDenied => {
            Some((io::ErrorKind::PermissionDenied, "may not be looked at"))
        }
        Err(_) => Some((io::ErrorKind::NotFound, "is not there")),
        Ok(file) if !file.is_file() => Some((io::ErrorKind::PermissionDenied, "is not a file")),
        Ok(_) if access(path, Access::EXEC_OK).is_err() => {
            Some((io::ErrorKind::PermissionDenied, "is not executable"))
        }
        Ok(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn names_and_paths() {
        let folder = tempfile::tempdir().expect("a folder");
        let bin = folder.path().join("bin");
        fs::create_dir(&bin).expect("a folder");
        for (name, mode) in [("tool", 0o755), ("text", 0o644)] {
            fs::write(bin.join(name), "#!/bin/sh\n").expect("a file");
            fs::set_permissions(bin.join(name), fs::Permissions::from_mode(mode)).expect("a mode");
        }
        let folder_text = folder.path().display();
        let search = OsStr::new("/nowhere:bin");
        #[rustfmt::skip]
        let rows = [
            ("tool", Ok("bin/tool")),
            ("bin/tool", Ok("bin/tool")),
            ("other", Err("program 'other' not found on PATH '/nowhere:bin'".to_owned())),
            ("text", Err("program 'text' found, but not executable, on PATH '/nowhere:bin'".to_owned())),
            ("./bin/text", Err(format!("program '{folder_text}/bin/text' is not executable"))),
            ("bin/", Err(format!("program '{folder_text}/bin/' is not a file"))),
            ("bin/no", Err(format!("program '{folder_text}/bin/no' is not there"))),
            ("", Err("no program named: expected its name or its path".to_owned())),
        ];
        for (program, expected) in rows {
            let found = find_program(Path::new(program), folder.path(), Some(search));
            let expected = expected.map(|path| folder.path().join(path));
            assert_eq!(found.map_err(|e| e.to_string()), expected, "{program}");
        }
    }
}
