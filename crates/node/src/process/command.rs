//! What is to be run, and the environment it finds.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crosstie_config::{ChildEnvironment, Inherit};

/// What a shell searches where there is no `PATH` at all, and what a child is given then.
const PATH_DEFAULT: &str = "/usr/local/bin:/usr/bin:/bin";

/// A program, and how it runs.
#[derive(Clone, Debug)]
pub struct Command {
    /// A name that is looked for on the child's `PATH`, or a path, relative to `directory`.
    pub program: PathBuf,
    pub arguments: Vec<OsString>,
    pub directory: PathBuf,
    pub environment: ChildEnvironment,
    /// The variables that a child does not inherit unless `environment` names them.
    pub secrets: Arc<BTreeSet<String>>,
    /// Set whatever `environment` says.
    pub more_variables: Vec<(String, String)>,
    /// Any core where empty.
    pub cpu_affinity: Vec<usize>,
    pub stdin: Stdin,
    pub stdout: Output,
    pub stderr: Output,
    pub streams: Streams,
}

/// What the child is handed in the place of its standard input and output, whatever else is said of
/// these.
#[derive(Clone, Debug, Default)]
pub struct Streams {
    pub stdin: Option<Arc<OwnedFd>>,
    pub stdout: Option<Arc<OwnedFd>>,
}

/// What a child reads.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stdin {
    /// Nothing.
    Null,
    /// These bytes; then the end, unless it is to stay open.
    Text { bytes: Vec<u8>, close: bool },
}

/// Where what a child writes goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Output {
    /// Nowhere.
    Null,
    /// Line by line to the caller that spawned it.
    Lines,
    /// Nowhere: writing costs the child nothing, and so does not differ from `Null` here.
    Drop,
}

impl Command {
    /// With the node's own environment and cores; its output is wanted.
    pub fn new(program: impl Into<PathBuf>, directory: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
            arguments: Vec::new(),
            directory: directory.into(),
            environment: ChildEnvironment {
                inherit: Inherit::All,
                variables: Vec::new(),
            },
            secrets: Arc::default(),
            more_variables: Vec::new(),
            cpu_affinity: Vec::new(),
            stdin: Stdin::Null,
            stdout: Output::Lines,
            stderr: Output::Lines,
            streams: Streams::default(),
        }
    }

    /// The names of the node's own variables that the child does not see, though nobody said which it
    /// is to see.
    pub(crate) fn withheld(&self, own: impl Iterator<Item = OsString>) -> Vec<String> {
        let is_inherited = |name: &OsStr| match self.environment.inherit {
            Inherit::AllButSecrets => !self.is_secret(name),
            Inherit::Usual => is_usual(name),
            _ => true,
        };
        let set = self
            .environment
            .variables
            .iter()
            .chain(&self.more_variables);
        let set: Vec<_> = set.map(|(name, _)| name).collect();
        let withheld =
            own.filter(|name| !is_inherited(name) && set.iter().all(|set| name != set.as_str()));
        let mut withheld: Vec<_> = withheld
            .map(|name| name.to_string_lossy().escape_debug().to_string())
            .collect();
        withheld.sort();
        withheld
    }

    fn is_secret(&self, name: &OsStr) -> bool {
        name.to_str()
            .is_some_and(|name| self.secrets.contains(name))
    }

    /// The child's whole environment, made from the node's own.
    ///
    /// `PATH` ends with `program_directory`, so that a child finds the node's program by its name.
    pub(super) fn variables(
        &self,
        own: impl Iterator<Item = (OsString, OsString)>,
        program_directory: &Path,
    ) -> BTreeMap<OsString, OsString> {
        let mut variables: BTreeMap<_, _> = match &self.environment.inherit {
            Inherit::All => own.collect(),
            Inherit::AllButSecrets => own.filter(|(name, _)| !self.is_secret(name)).collect(),
            Inherit::Usual => own.filter(|(name, _)| is_usual(name)).collect(),
            Inherit::None => BTreeMap::new(),
            Inherit::Only(names) => own
                .filter(|(name, _)| names.iter().any(|wanted| name == OsStr::new(wanted)))
                .collect(),
        };
        for (name, value) in self
            .environment
            .variables
            .iter()
            .chain(&self.more_variables)
        {
            variables.insert(name.into(), value.into());
        }
        // The log has the output of a Python program at once, as on Crossbar.io.
        variables
            .entry("PYTHONUNBUFFERED".into())
            .or_insert_with(|| "1".into());
        let path = variables
            .entry("PATH".into())
            .or_insert_with(|| PATH_DEFAULT.into());
        // A directory with a colon in its name cannot be on a PATH.
        let with_ours = std::env::split_paths(path)
            .filter(|directory| directory != program_directory)
            .chain([program_directory.to_owned()]);
        if let Ok(joined) = std::env::join_paths(with_ours) {
            *path = joined;
        }
        variables
    }
}

/// Whether a variable is one of those that a program may need to run at all. What services are told in
/// variables (passwords, tokens, proxies with both in them) is not for whatever a node starts.
fn is_usual(name: &OsStr) -> bool {
    const NAMES: &[&str] = &[
        "PATH",
        "HOME",
        "USER",
        "LOGNAME",
        "SHELL",
        "TERM",
        "HOSTNAME",
        "LANG",
        "LANGUAGE",
        "TZ",
        "TMPDIR",
        "TMP",
        "TEMP",
        "LD_LIBRARY_PATH",
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
        "VIRTUAL_ENV",
        "CONDA_PREFIX",
        "NODE_PATH",
    ];
    const BEGINNINGS: &[&str] = &["LC_", "PYTHON", "XDG_"];
    name.to_str().is_some_and(|name| {
        NAMES.contains(&name)
            || BEGINNINGS
                .iter()
                .any(|beginning| name.starts_with(beginning))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(
        inherit: Inherit,
        set: &[(&str, &str)],
        more: &[(&str, &str)],
        expected: &[(&str, &str)],
    ) {
        let mut command = Command::new("true", "/");
        let owned = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
            pairs.iter().map(|&(k, v)| (k.into(), v.into())).collect()
        };
        command.environment = ChildEnvironment {
            inherit,
            variables: owned(set),
        };
        command.more_variables = owned(more);
        command.secrets = Arc::new(["NOVA_PASSWORD".to_owned()].into());
        let own = [
            ("HOME", "/root"),
            ("LANG", "C"),
            ("NOVA_PASSWORD", "x"),
            ("PATH", "/opt/bin:/bin"),
        ];
        let own = own.map(|(k, v)| (k.into(), v.into())).into_iter();
        let variables = command.variables(own, Path::new("/opt/bin"));
        let expected: BTreeMap<OsString, OsString> = expected
            .iter()
            .chain(&[("PYTHONUNBUFFERED", "1")])
            .map(|&(k, v)| (k.into(), v.into()))
            .collect();
        assert_eq!(variables, expected);
    }

    #[test]
    fn a_childs_environment() {
        let all = [
            ("HOME", "/root"),
            ("LANG", "C"),
            ("NOVA_PASSWORD", "x"),
            ("PATH", "/bin:/opt/bin"),
        ];
        check(Inherit::All, &[], &[], &all);
        let usual = [("HOME", "/root"), ("LANG", "C"), ("PATH", "/bin:/opt/bin")];
        check(Inherit::Usual, &[], &[], &usual);
        check(Inherit::Usual, &[("NOVA_PASSWORD", "x")], &[], &all);
        check(Inherit::AllButSecrets, &[], &[], &usual);
        check(Inherit::AllButSecrets, &[("NOVA_PASSWORD", "x")], &[], &all);
        check(
            Inherit::None,
            &[("A", "1")],
            &[],
            &[
                ("A", "1"),
                ("PATH", "/usr/local/bin:/usr/bin:/bin:/opt/bin"),
            ],
        );
        check(
            Inherit::Only(vec!["LANG".into(), "NOT_SET".into()]),
            &[("PATH", "/x")],
            &[("LANG", "de")],
            &[("LANG", "de"), ("PATH", "/x:/opt/bin")],
        );
    }

    #[test]
    fn what_a_child_does_not_see_is_named() {
        let mut command = Command::new("true", "/");
        command.more_variables = vec![("SET".to_owned(), "1".to_owned())];
        let own = || {
            ["PATH", "TOKEN", "LC_ALL", "SET", "A\n"]
                .map(OsString::from)
                .into_iter()
        };
        assert!(command.withheld(own()).is_empty(), "it sees everything");
        command.environment.inherit = Inherit::Usual;
        assert_eq!(command.withheld(own()), ["A\\n", "TOKEN"]);
        command.environment.inherit = Inherit::AllButSecrets;
        command.secrets = Arc::new(["SET".to_owned(), "TOKEN".to_owned()].into());
        assert_eq!(command.withheld(own()), ["TOKEN"]);
    }
}
