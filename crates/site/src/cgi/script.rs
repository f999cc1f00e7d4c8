//! Finds the script for a path: a file below the directory, with symbolic links resolved.

use std::path::PathBuf;

/// A directory of scripts.
pub(super) struct Scripts {
    directory: PathBuf,
}

/// A script, and the rest of the path.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Script {
    pub(super) file: PathBuf,
    /// The requested path up to the script.
    pub(super) name: String,
    /// `/more`; empty for nothing.
    pub(super) path_info: String,
}

impl Scripts {
    /// A missing directory is not an error: no script is found until the directory exists.
    pub(super) fn open(directory: PathBuf) -> Self {
        if !directory.is_dir() {
            tracing::warn!(
                "there is no directory {}: no scripts are served until it exists",
                directory.display()
            );
        }
        Self { directory }
    }

    /// The first file along these components; `None` if there is none, or the path leaves the directory.
    pub(super) fn find(&self, base: &str, rest: &[String]) -> Option<Script> {
        // Without symbolic links.
        let directory = self.directory.canonicalize().ok()?;
        let mut file = directory.clone();
        let mut name = base.to_owned();
        for (index, component) in rest.iter().enumerate() {
            if component.is_empty() {
                return None;
            }
            // Each step is checked, so that no link is followed to the outside.
            file = file.join(component).canonicalize().ok()?;
            if !file.starts_with(&directory) {
                tracing::debug!("{} is not below the scripts' directory", file.display());
                return None;
            }
            name.push('/');
            name.push_str(component);
            let kind = file.metadata().ok()?;
            if kind.is_file() {
                let path_info = rest[index + 1..]
                    .iter()
                    .flat_map(|component| ["/", component])
                    .collect();
                return Some(Script {
                    file,
                    name,
                    path_info,
                });
            }
            if !kind.is_dir() {
                return None;
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn scripts_below_the_directory_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path().canonicalize().expect("a path");
        let scripts = folder.join("scripts");
        fs::create_dir_all(scripts.join("deep")).expect("a folder");
        for file in ["a.py", "deep/b.py", "../secret.py"] {
            fs::write(scripts.join(file), "").expect("a file");
        }
        for (to, from) in [
            ("a.py", "inside.py"),
            ("../secret.py", "outside.py"),
            ("..", "up"),
            ("/dev/null", "device"),
            ("nowhere", "broken"),
            ("loop", "loop"),
        ] {
            symlink(to, scripts.join(from)).expect("a link");
        }
        type Row<'r> = (&'r [&'r str], Option<(&'r str, &'r str, &'r str)>);
        let rows: &[Row<'_>] = &[
            (&["a.py"], Some(("a.py", "/cgi/a.py", ""))),
            (&["a.py", ""], Some(("a.py", "/cgi/a.py", "/"))),
            (&["a.py", "x", "y"], Some(("a.py", "/cgi/a.py", "/x/y"))),
            (&["deep", "b.py"], Some(("deep/b.py", "/cgi/deep/b.py", ""))),
            (&["inside.py"], Some(("a.py", "/cgi/inside.py", ""))),
            (&["outside.py"], None),
            (&["up", "secret.py"], None),
            (&["up", "scripts", "a.py"], None),
            (&["device"], None),
            (&["broken"], None),
            (&["loop"], None),
            (&["deep"], None),
            (&["deep", ""], None),
            (&["no.py"], None),
            (&[""], None),
            (&[], None),
        ];
        let service = Scripts::open(folder.join("scripts"));
        for (path, expected) in rows {
            let rest: Vec<_> = path.iter().map(|part| (*part).to_owned()).collect();
            let expected = expected.map(|(file, name, path_info)| Script {
                file: scripts.join(file),
                name: name.to_owned(),
                path_info: path_info.to_owned(),
            });
            assert_eq!(service.find("/cgi", &rest), expected, "{path:?}");
        }
        let rest = ["b.py".to_owned()];
        let later = Scripts::open(folder.join("later"));
        assert_eq!(later.find("/cgi", &rest), None);
        symlink("scripts/deep", folder.join("later")).expect("a link");
        let found = later.find("/cgi", &rest).map(|script| script.file);
        assert_eq!(found, Some(scripts.join("deep/b.py")));
        let no_directory = Scripts::open(scripts.join("a.py"));
        assert_eq!(no_directory.find("/cgi", &rest), None);
    }
}
