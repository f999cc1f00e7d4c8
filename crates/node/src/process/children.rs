//! A node's children: starts and controls them.

use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};

use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, waitid,
};
use rustix::thread::CpuSet;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use super::command::{Command, Output, Stdin};
use super::ended::Ended;
use super::exec_child;
use super::guard::Guard;
use super::lines::Line;
use super::orphans;
use super::program::find_program;
use super::supervise::Supervised;

/// The children of one node. They share a guard, which starts with the first child and ends with the last owner of
/// this.
pub struct Children {
    executable: PathBuf,
    guard: Arc<Guard>,
}

impl Children {
    /// `executable` is the node's own program, with the two hidden subcommands.
    pub fn new(executable: PathBuf) -> Self {
        let guard = Arc::new(Guard::new(executable.clone()));
        Self { executable, guard }
    }

    /// Starts a child; `lines` is called on the present runtime for each line of its output, and must not block.
    pub fn spawn(
        &self,
        command: &Command,
        lines: impl FnMut(Line) + Send + 'static,
    ) -> io::Result<Child> {
        let (program, mut process) = prepare(&self.executable, command)?;
        let mark = orphans::new_mark();
        process.env(orphans::VARIABLE, &mark);
        self.guard.start()?;
        let ends = signal(SignalKind::child())?;
        let started = orphans::start(&mut process).map_err(|e| {
            let text = format!(
                "cannot start '{}' by way of '{} {}': {e}",
                program.display(),
                self.executable.display(),
                exec_child::EXEC_CHILD
            );
            io::Error::new(e.kind(), text)
        })?;
        // Any later failure ends the child.
        let mut supervised = Supervised::new(started, mark, ends, Arc::clone(&self.guard));
        let process = supervised.process();
        self.guard.add(process.id)?;
        let (input, outputs) = supervised.pipes(&command.stdin)?;
        let (says_ended, ended) = watch::channel(None);
        tokio::spawn(async move {
            says_ended.send_replace(Some(supervised.run(input, outputs, lines).await));
        });
        Ok(Child { process, ended })
    }
}

impl Drop for Children {
    fn drop(&mut self) {
        orphans::end_all();
    }
}

/// The process that becomes a command, by way of this program.
pub(super) fn prepare(
    executable: &Path,
    command: &Command,
) -> io::Result<(PathBuf, std::process::Command)> {
    let directory = &command.directory;
    if !directory.is_dir() {
        let text = format!("working directory '{}' is not there", directory.display());
        return Err(io::Error::new(io::ErrorKind::NotFound, text));
    }
    let cpus = &command.cpu_affinity;
    if let Some(cpu) = cpus.iter().find(|&&cpu| cpu >= CpuSet::MAX_CPU) {
        let text = format!("no core {cpu}: expected less than {}", CpuSet::MAX_CPU);
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    let own_directory = executable.parent().unwrap_or_else(|| Path::new("/"));
    let variables = command.variables(std::env::vars_os(), own_directory);
    let path = variables.get(OsStr::new("PATH")).map(AsRef::as_ref);
    let program = find_program(&command.program, directory, path)?;

    let mut process = std::process::Command::new(executable);
    process
        .args(exec_child::arguments(cpus))
        .arg(&program)
        .args(&command.arguments)
        .current_dir(directory)
        .env_clear()
        .envs(variables)
        .process_group(0)
        .stdin(match (&command.streams.stdin, &command.stdin) {
            (Some(stream), _) => handed(stream)?,
            (None, Stdin::Null) => Stdio::null(),
            (None, Stdin::Text { .. }) => Stdio::piped(),
        })
        .stdout(match &command.streams.stdout {
            Some(stream) => handed(stream)?,
            None => stdio(command.stdout),
        })
        .stderr(stdio(command.stderr));
    Ok((program, process))
}

fn handed(stream: &OwnedFd) -> io::Result<Stdio> {
    stream.try_clone().map(Stdio::from)
}

fn stdio(output: Output) -> Stdio {
    match output {
        Output::Lines => Stdio::piped(),
        Output::Null | Output::Drop => Stdio::null(),
    }
}

/// A child process. Dropping it kills the process.
pub struct Child {
    process: Arc<Process>,
    ended: watch::Receiver<Option<Ended>>,
}

impl Child {
    /// Waits until it has ended, its group is killed, and its output was passed on. May be called repeatedly, and
    /// dropped.
    pub async fn wait(&mut self) -> Ended {
        let ended = self.ended.wait_for(Option::is_some).await;
        // The sender is gone only if the runtime ends, or `lines` panicked.
        ended.ok().and_then(|ended| *ended).unwrap_or_else(|| {
            self.process.kill_group();
            Ended::UNKNOWN
        })
    }

    /// The process's id, which is also its group's.
    pub fn id(&self) -> u32 {
        self.process.id.as_raw_nonzero().get().unsigned_abs()
    }

    /// Sends SIGTERM to the process; its group is killed after its end.
    pub fn terminate(&self) {
        self.process.terminate();
    }

    /// Sends SIGKILL to its whole group.
    pub fn kill(&self) {
        self.process.kill_group();
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.process.kill_group();
    }
}

/// The target of signals, while its process id is valid.
pub(super) struct Process {
    pub(super) id: Pid,
    /// Afterwards the id may belong to another process.
    is_reaped: Mutex<bool>,
}

impl Process {
    pub(super) fn of(started: &std::process::Child) -> Self {
        Self {
            id: Pid::from_child(started),
            is_reaped: Mutex::new(false),
        }
    }

    fn terminate(&self) {
        let is_reaped = self
            .is_reaped
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if !*is_reaped {
            let _ = kill_process(self.id, Signal::TERM);
        }
    }

    pub(super) fn kill_group(&self) {
        let is_reaped = self
            .is_reaped
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if !*is_reaped {
            let _ = kill_process_group(self.id, Signal::KILL);
            // It may have joined another group.
            let _ = kill_process(self.id, Signal::KILL);
        }
    }

    /// Whether it has ended, and waits to be reaped.
    pub(super) fn has_ended(&self) -> bool {
        let what = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        // An error means that it was reaped elsewhere: then it has ended.
        !matches!(waitid(WaitId::Pid(self.id), what), Ok(None))
    }

    /// Kills the rest of the group of an ended process, then reaps the process: in this order, because its id cannot be
    /// reused until then.
    pub(super) fn reap(&self, started: &mut std::process::Child) -> Ended {
        let mut is_reaped = self
            .is_reaped
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if !*is_reaped {
            let _ = kill_process_group(self.id, Signal::KILL);
        }
        // If it was reaped already, the library knows its status.
        let status = orphans::let_go(self.id, || started.wait());
        *is_reaped = true;
        status.map_or(Ended::UNKNOWN, Ended::from)
    }
}
