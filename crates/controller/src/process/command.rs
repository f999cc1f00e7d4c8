//! What is to be run, and the environment it finds.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

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
    /// Set whatever `environment` says.
    pub more_variables: Vec<(String, String)>,
    /// Any core where empty.
    pub cpu_affinity: Vec<usize>,
    pub stdin: Stdin,
    pub stdout: Output,
    pub stderr: Output,
}

/// What a child reads.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stdin {
    /// Nothing.
    Null,
    /// These octets; then the end, unless it is to stay open.
    Text { octets: Vec<u8>, close: bool },
}

/// Where what a child writes goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Output {
    /// Nowhere.
    Null,
    /// Line by line to whoever spawned it.
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
            more_variables: Vec::new(),
            cpu_affinity: Vec::new(),
            stdin: Stdin::Null,
            stdout: Output::Lines,
            stderr: Output::Lines,
        }
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
        let own = [("HOME", "/root"), ("LANG", "C"), ("PATH", "/opt/bin:/bin")];
        let own = own.map(|(k, v)| (k.into(), v.into())).into_iter();
        let variables = command.variables(own, Path::new("/opt/bin"));
        let expected: BTreeMap<OsString, OsString> = expected
            .iter()
            .map(|&(k, v)| (k.into(), v.into()))
            .collect();
        assert_eq!(variables, expected);
    }

    #[test]
    fn a_childs_environment() {
        let all = [("HOME", "/root"), ("LANG", "C"), ("PATH", "/bin:/opt/bin")];
        check(Inherit::All, &[], &[], &all);
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
}
