//! Programs that web services are answered by. A router starts no process itself: whoever runs it does, and
//! sees to it that none outlives the node.

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use crosstie_config::{ChildEnvironment, NativeOptions};
use tokio::sync::oneshot;

/// What is to run.
#[derive(Debug)]
pub struct Program {
    pub executable: Executable,
    pub arguments: Vec<OsString>,
    pub directory: PathBuf,
    pub environment: ChildEnvironment,
    /// Set whatever `environment` says.
    pub variables: Vec<(String, String)>,
    /// Any core where empty.
    pub cpu_affinity: Vec<usize>,
    /// What it is called in the log, where its standard error goes; its standard output too, where it is not
    /// given one.
    pub title: &'static str,
    /// Nothing is there to be read where not given.
    pub stdin: Option<OwnedFd>,
    pub stdout: Option<OwnedFd>,
}

/// Which program.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Executable {
    /// A name on `PATH`, or a path.
    Named(PathBuf),
    /// The interpreter that components have: the one named, else that beside the node's program, else
    /// that on `PATH`.
    Python(Option<String>),
}

/// What a router's own programs run with.
#[derive(Clone, Debug)]
pub(crate) struct Hosting {
    pub(crate) programs: Option<Arc<dyn Programs>>,
    /// As the worker's components have it.
    pub(crate) options: NativeOptions,
}

impl Hosting {
    /// Who starts programs, where there is a node.
    pub(crate) fn programs(&self) -> io::Result<&Arc<dyn Programs>> {
        let without = || io::Error::other("there is no node that starts programs");
        self.programs.as_ref().ok_or_else(without)
    }
}

/// Who starts programs.
pub trait Programs: fmt::Debug + Send + Sync {
    /// Starts one; the answer comes when the starter gets to it.
    fn start(&self, program: Program) -> oneshot::Receiver<io::Result<Box<dyn Running>>>;

    /// Runs a short one to its end and returns what it wrote; an end that is not well is an error with
    /// what it said.
    fn ask(&self, program: Program, within: Duration) -> io::Result<String>;

    /// A directory that only this user may look into, for sockets; none without a node's.
    fn private(&self) -> Option<&Path>;

    /// How much programs of the project's own kind log: the word for it on a command line.
    fn loglevel(&self) -> &str;
}

/// A program that runs. Dropped, it is killed with all that it started.
pub trait Running: Send {
    /// How it ended, in words, once it has.
    fn ended(&mut self) -> Pin<Box<dyn Future<Output = String> + Send + '_>>;

    /// Asks it to end.
    fn terminate(&self);
}
