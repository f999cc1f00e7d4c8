//! Ends a node's children when the node itself cannot.

use std::collections::HashSet;
use std::io::{self, BufRead, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{ChildStdin, Command, ExitCode, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, kill_process_group, test_kill_process_group, waitid,
};
use tokio::signal::unix::{SignalKind, signal};

use super::orphans;

/// The hidden subcommand that must lead to [`child_guard`].
pub const CHILD_GUARD: &str = "child-guard";

/// A guard that ends this often within this time is not replaced; the next child's start reports why, or retries.
const RENEWALS_MAX: usize = 10;
const RENEWALS_WITHIN: Duration = Duration::from_secs(60);
/// Time between SIGTERM and SIGKILL, in steps.
const STEPS: u32 = 40;
const STEP: Duration = Duration::from_millis(50);

/// The node's side: informs the guard of all process groups.
///
/// A guard that was killed is replaced.
pub(super) struct Guard {
    executable: PathBuf,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    process: Option<Process>,
    /// The times of recent replacements.
    renewals: Vec<Instant>,
    groups: HashSet<Pid>,
}

struct Process {
    process: std::process::Child,
    line: ChildStdin,
}

impl Process {
    fn has_ended(&self) -> bool {
        let id = Pid::from_child(&self.process);
        let what = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        !matches!(waitid(WaitId::Pid(id), what), Ok(None))
    }

    fn let_go(&mut self) {
        let id = Pid::from_child(&self.process);
        orphans::let_go(id, || drop(self.process.wait()));
    }
}

impl Guard {
    pub(super) fn new(executable: PathBuf) -> Self {
        Self {
            executable,
            state: Mutex::default(),
        }
    }

    /// Ensures that a guard runs, so that an error precedes a child's start.
    pub(super) fn start(&self) -> io::Result<()> {
        let mut state = self.state();
        if state.process.is_none() {
            state.process = Some(self.spawn(&state.groups)?);
        }
        Ok(())
    }

    pub(super) fn add(&self, group: Pid) -> io::Result<()> {
        let mut state = self.state();
        state.groups.insert(group);
        self.tell(&mut state, &line('+', group))
    }

    pub(super) fn remove(&self, group: Pid) -> io::Result<()> {
        let mut state = self.state();
        state.groups.remove(&group);
        self.tell(&mut state, &line('-', group))
    }

    /// Replaces a guard that has ended, after some child has ended.
    pub(super) fn renew(&self) {
        let mut state = self.state();
        let Some(guard) = &mut state.process else {
            return;
        };
        if !guard.has_ended() {
            return;
        }
        guard.let_go();
        state.process = None;
        if state.groups.is_empty() {
            return;
        }
        state
            .renewals
            .retain(|then| then.elapsed() < RENEWALS_WITHIN);
        if state.renewals.len() >= RENEWALS_MAX {
            tracing::warn!(
                "The guard of child processes was killed {} times within {} s; until the next child is \
                 started there is none, and children may outlive a node that is killed",
                RENEWALS_MAX + 1,
                RENEWALS_WITHIN.as_secs()
            );
            return;
        }
        state.renewals.push(Instant::now());
        tracing::warn!("The guard of child processes was killed; starting another");
        match self.spawn(&state.groups) {
            Ok(guard) => state.process = Some(guard),
            Err(e) => tracing::warn!("{e}"),
        }
    }

    /// A line is short enough for an atomic write to a pipe.
    fn tell(&self, state: &mut State, line: &str) -> io::Result<()> {
        if let Some(guard) = &mut state.process {
            if guard.line.write_all(line.as_bytes()).is_ok() {
                return Ok(());
            }
            // The guard is dead, or stopped for so long that the pipe is full. It must not see the end of the pipe.
            let _ = guard.process.kill();
            guard.let_go();
            state.process = None;
        }
        if !state.groups.is_empty() {
            state.process = Some(self.spawn(&state.groups)?);
        }
        Ok(())
    }

    fn spawn(&self, groups: &HashSet<Pid>) -> io::Result<Process> {
        let mut command = Command::new(&self.executable);
        command
            .arg(CHILD_GUARD)
            // It blocks no file system, and gets no signals typed for the node.
            .current_dir("/")
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let mut process = orphans::start(&mut command).map_err(|e| {
            let text = format!(
                "cannot start '{} {CHILD_GUARD}', the guard of child processes: {e}",
                self.executable.display()
            );
            io::Error::new(e.kind(), text)
        })?;
        let Some(mut line_to) = process.stdin.take() else {
            return Err(io::Error::other("a guard without a pipe"));
        };
        fcntl_setfl(&line_to, fcntl_getfl(&line_to)? | OFlags::NONBLOCK)?;
        for &group in groups {
            line_to.write_all(line('+', group).as_bytes())?;
        }
        Ok(Process {
            process,
            line: line_to,
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Every change is one step, so that a panic elsewhere leaves a consistent state.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(Process { mut process, line }) = state.process.take() {
            drop(line);
            if state.groups.is_empty() {
                // Ends at once, and leaves no zombie behind.
                orphans::let_go(Pid::from_child(&process), || drop(process.wait()));
            }
        }
    }
}

fn line(sign: char, group: Pid) -> String {
    format!("{sign}{}\n", Pid::as_raw_pid(group))
}

/// Reads lines `+GROUP` and `-GROUP` until its node is gone; then ends the remaining groups.
pub fn child_guard() -> ExitCode {
    // The node itself acts on signals for all its processes.
    if let Err(why) = outlive_signals() {
        tracing::warn!("The guard of child processes can be ended by signals: {why}");
    }
    let mut groups = HashSet::new();
    let mut input = io::stdin().lock();
    let mut line = String::new();
    // The end of its node leaves at most a line without a newline.
    while input
        .read_line(&mut line)
        .is_ok_and(|_| line.ends_with('\n'))
    {
        handle_line(line.trim_end(), &mut groups);
        line.clear();
    }
    end(groups);
    ExitCode::SUCCESS
}

fn handle_line(line: &str, groups: &mut HashSet<Pid>) {
    let Some((sign, number)) = line.split_at_checked(1) else {
        return;
    };
    // kill(2) takes 1 and less for more than one group.
    let number = number.parse().ok().filter(|&number: &i32| number > 1);
    let Some(group) = number.and_then(Pid::from_raw) else {
        return;
    };
    match sign {
        "+" => groups.insert(group),
        "-" => groups.remove(&group),
        _ => false,
    };
}

fn end(mut groups: HashSet<Pid>) {
    for &group in &groups {
        let _ = kill_process_group(group, Signal::TERM);
    }
    for _ in 0..STEPS {
        groups.retain(|&group| test_kill_process_group(group).is_ok());
        if groups.is_empty() {
            return;
        }
        std::thread::sleep(STEP);
    }
    for group in groups {
        let _ = kill_process_group(group, Signal::KILL);
    }
}

/// An installed handler stays, even without a listener.
fn outlive_signals() -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let _context = runtime.enter();
    for kind in [
        SignalKind::hangup(),
        SignalKind::interrupt(),
        SignalKind::quit(),
        SignalKind::terminate(),
    ] {
        drop(signal(kind)?);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_valid_groups_are_accepted() {
        let mut groups = HashSet::new();
        for line in [
            "+7",
            "+9",
            "-7",
            "+0",
            "+1",
            "+-1",
            "+x",
            "",
            "+",
            "*5",
            "é7",
            "+99999999999",
        ] {
            handle_line(line, &mut groups);
        }
        assert_eq!(
            groups.into_iter().map(Pid::as_raw_pid).collect::<Vec<_>>(),
            [9]
        );
    }
}
