//! A child's command and environment.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crosstie_config::{ChildEnvironment, Inherit};

/// The search path of shells without `PATH`, which a child gets then.
const PATH_DEFAULT: &str = "/usr/local/bin:/usr/bin:/bin";

/// A program, and its parameters.
#[derive(Clone, Debug)]
pub struct Command {
    /// A name to be searched on the child's `PATH`, or a path, relative to `directory`.
    pub program: PathBuf,
    pub arguments: Vec<OsString>,
    pub directory: PathBuf,
    pub environment: ChildEnvironment,
    /// Variables that a child inherits only if `environment` names them.
    pub secrets: Arc<BTreeSet<String>>,
    /// Set in addition to `environment`.
    pub more_variables: Vec<(String, String)>,
    /// Any core if empty.
    pub cpu_affinity: Vec<usize>,
    pub stdin: Stdin,
    pub stdout: Output,
    pub stderr: Output,
    pub streams: Streams,
}

/// Descriptors for the child's standard input and output, in place of its other settings.
#[derive(Clone, Debug, Default)]
pub struct Streams {
    pub stdin: Option<Arc<OwnedFd>>,
    pub stdout: Option<Arc<OwnedFd>>,
}

/// The child's input.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stdin {
    /// Nothing.
    Null,
    /// These bytes, followed by the end unless the input stays open.
    Text { bytes: Vec<u8>, close: bool },
}

/// The destination of a child's output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Output {
    /// Discarded.
    Null,
    /// Passed line by line to the caller that spawned the child.
    Lines,
    /// Discarded: writing costs the child nothing, so that this equals `Null` here.
    Drop,
}

impl Command {
    /// With the node's own environment and cores; its output is passed on.
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

    /// The names of the node's variables that the child does not get by default, although no setting excludes them.
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
        let withheld = own
            .filter(|name| !is_of_the_manager(name))
            .filter(|name| !is_inherited(name) && set.iter().all(|set| name != set.as_str()));
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

    /// The child's whole environment, derived from the node's own.
    ///
    /// `PATH` ends with `program_directory`, so that a child finds the node's program by its name.
    pub(super) fn variables(
        &self,
        own: impl Iterator<Item = (OsString, OsString)>,
        program_directory: &Path,
    ) -> BTreeMap<OsString, OsString> {
        let own = own.filter(|(name, _)| !is_of_the_manager(name));
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
        // A Python program's output reaches the log at once, as with Crossbar.io.
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

/// Whether the service manager set the variable for the node alone: a child that finds one would speak for the node.
fn is_of_the_manager(name: &OsStr) -> bool {
    const NAMES: &[&str] = &[
        "NOTIFY_SOCKET",
        "WATCHDOG_PID",
        "WATCHDOG_USEC",
        "LISTEN_PID",
        "LISTEN_FDS",
        "LISTEN_FDNAMES",
    ];
    NAMES.iter().any(|of_it| name == OsStr::new(of_it))
}

/// Whether a program may need the variable to run at all. Variables that pass credentials to services (passwords,
/// tokens, proxies with both) are not for every program that a node starts.
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
            ("LISTEN_FDS", "1"),
            ("NOTIFY_SOCKET", "/run/systemd/notify"),
            ("NOVA_PASSWORD", "x"),
            ("PATH", "/opt/bin:/bin"),
            ("WATCHDOG_USEC", "30000000"),
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
    fn withheld_variables_are_named() {
        let mut command = Command::new("true", "/");
        command.more_variables = vec![("SET".to_owned(), "1".to_owned())];
        let own = || {
            ["PATH", "TOKEN", "LC_ALL", "NOTIFY_SOCKET", "SET", "A\n"]
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
