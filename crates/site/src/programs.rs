//! Programs that answer web services. The router itself starts no process: the node does, and ensures that none
//! outlives it.

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

/// A program to be run.
#[derive(Debug)]
pub struct Program {
    pub executable: Executable,
    pub arguments: Vec<OsString>,
    pub directory: PathBuf,
    pub environment: ChildEnvironment,
    /// Set in addition to `environment`.
    pub variables: Vec<(String, String)>,
    /// Any core if empty.
    pub cpu_affinity: Vec<usize>,
    /// The program's name in the log, which gets its standard error; and its standard output, unless that is
    /// redirected.
    pub title: &'static str,
    /// Empty input if absent.
    pub stdin: Option<OwnedFd>,
    pub stdout: Option<OwnedFd>,
}

/// The executable.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Executable {
    /// A name on `PATH`, or a path.
    Named(PathBuf),
    /// The interpreter of components: the one named, or else the one beside the node's program, or else the one on
    /// `PATH`.
    Python(Option<String>),
}

/// The settings of a router's own programs.
#[derive(Clone, Debug)]
pub struct Hosting {
    pub programs: Option<Arc<dyn Programs>>,
    /// As for the worker's components.
    pub options: NativeOptions,
}

impl Hosting {
    /// The starter of programs, if the router runs in a node.
    pub fn programs(&self) -> io::Result<&Arc<dyn Programs>> {
        let without = || io::Error::other("there is no node that starts programs");
        self.programs.as_ref().ok_or_else(without)
    }
}

/// Starts programs.
pub trait Programs: fmt::Debug + Send + Sync {
    /// Starts a program; the result arrives once the starter has handled the request.
    fn start(&self, program: Program) -> oneshot::Receiver<io::Result<Box<dyn Running>>>;

    /// Runs a short program to its end, and returns its output; a failure is an error with that output.
    fn ask(&self, program: Program, within: Duration) -> io::Result<String>;

    /// A directory that only this user can read, for sockets; `None` without a node directory.
    fn private(&self) -> Option<&Path>;

    /// The log level for Crosstie's own programs, as a command line word.
    fn loglevel(&self) -> &str;
}

/// A running program. Dropping it kills the program and its children.
pub trait Running: Send {
    /// Waits for its end, and describes it.
    fn ended(&mut self) -> Pin<Box<dyn Future<Output = String> + Send + '_>>;

    /// Requests its end.
    fn terminate(&self);
}
