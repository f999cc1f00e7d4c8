//! The first stage of a child process: this program, before it executes another.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};
use rustix::thread::{CpuSet, sched_setaffinity};

use super::descriptors::{limit_of_children, set_limit};

/// The hidden subcommand that must lead to [`exec_child`].
pub const EXEC_CHILD: &str = "exec-child";

/// As in shells: the program cannot be run, or does not exist.
const EXIT_CANNOT_RUN: u8 = 126;
const EXIT_NOT_THERE: u8 = 127;

/// Arguments for the subcommand, from its parent.
pub(super) fn arguments(cpu_affinity: &[usize]) -> [OsString; 4] {
    let cpus: Vec<_> = cpu_affinity.iter().map(ToString::to_string).collect();
    [
        EXEC_CHILD.into(),
        std::process::id().to_string().into(),
        cpus.join(",").into(),
        limit_of_children()
            .map_or_else(String::new, |limit| limit.to_string())
            .into(),
    ]
}

/// `exec-child PARENT CPUS DESCRIPTORS PROGRAM [ARGUMENT]…`: returns only on failure.
#[expect(
    clippy::print_stderr,
    reason = "the child has nothing else yet to say it with, and its node reads it"
)]
pub fn exec_child(arguments: &[OsString]) -> ExitCode {
    let Err((code, why)) = become_program(arguments);
    eprintln!("<3>crosstie {EXEC_CHILD}: {why}");
    ExitCode::from(code)
}

fn become_program(arguments: &[OsString]) -> Result<std::convert::Infallible, (u8, String)> {
    let [parent, cpus, descriptors, program, arguments @ ..] = arguments else {
        return Err((
            2,
            "expected PARENT CPUS DESCRIPTORS PROGRAM; a node gives them".to_owned(),
        ));
    };
    let parent = parent
        .to_str()
        .and_then(|text| text.parse().ok())
        .and_then(Pid::from_raw)
        .ok_or_else(|| {
            (
                2,
                format!("expected a parent's process id, not {}", parent.display()),
            )
        })?;
    // The signal comes first: a later death of the node triggers it, and an earlier one is detected below.
    set_parent_process_death_signal(Some(Signal::TERM)).map_err(|e| {
        (
            EXIT_CANNOT_RUN,
            format!("cannot be told of the node's end: {e}"),
        )
    })?;
    if getppid() != Some(parent) {
        return Err((EXIT_CANNOT_RUN, "its node is gone".to_owned()));
    }
    if let Some(cpus) = cpu_set(cpus).map_err(|why| (2, why))? {
        sched_setaffinity(None, &cpus).map_err(|e| {
            (
                EXIT_CANNOT_RUN,
                format!("cannot take the cores asked for: {e}"),
            )
        })?;
    }
    if let Some(limit) = descriptors.to_str().and_then(|text| text.parse().ok()) {
        set_limit(limit);
    }
    let error = Command::new(program).args(arguments).exec();
    let code = match error.kind() {
        io::ErrorKind::NotFound => EXIT_NOT_THERE,
        _ => EXIT_CANNOT_RUN,
    };
    // A script is "not found" if its interpreter is missing.
    Err((code, format!("cannot run '{}': {error}", program.display())))
}

/// `None` for all cores.
fn cpu_set(text: &OsStr) -> Result<Option<CpuSet>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    let mut set = CpuSet::new();
    for cpu in text.to_string_lossy().split(',') {
        match cpu.parse() {
            Ok(cpu) if cpu < CpuSet::MAX_CPU => set.set(cpu),
            _ => return Err(format!("expected the numbers of cores, not '{cpu}'")),
        }
    }
    Ok(Some(set))
}
