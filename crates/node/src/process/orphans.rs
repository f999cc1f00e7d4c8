//! Processes that a node's children have left behind: started by them, in a group of their own (`setsid`, daemons), so
//! that the end of the child's group does not end them.
//!
//! The node is the "subreaper" of its descendants: a process whose parent has ended becomes the node's child, not that
//! of the system's first process. A variable in every child's environment, which descendants inherit, identifies the
//! child of origin. A process that has cleared its environment ends with the node.
//!
//! Only the node's children that this module did not start are signalled. Their ids cannot be reused meanwhile, because
//! only this process can reap them.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitOptions, getpid, kill_process, set_child_subreaper,
    test_kill_process_group, waitid, waitpid,
};

/// The variable in the environment of each child.
pub(super) const VARIABLE: &str = "CROSSTIE_CHILD";

/// Processes that one kill orphans are killed in the next round.
const ROUNDS_MAX: u32 = 50;
const BETWEEN_ROUNDS: Duration = Duration::from_millis(10);
/// A scan visits all processes of the machine.
const BETWEEN_LOOKS: Duration = Duration::from_millis(500);

/// A process has one set of children, whichever of its parts started them.
static OWN: Mutex<Option<Own>> = Mutex::new(None);

struct Own {
    /// Started here, and not reaped.
    started: HashSet<Pid>,
    /// Present before this process became a node, such as those of a shell that `exec`ed it.
    foreign: HashSet<Pid>,
    /// The time of the last scan by [`reap`].
    looked: Instant,
}

/// A value for [`VARIABLE`] that no other child has.
pub(super) fn new_mark() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("{}-{number}", Pid::as_raw_pid(getpid()))
}

/// Starts a process that its caller reaps.
pub(super) fn start(command: &mut Command) -> io::Result<Child> {
    let mut own = lock();
    let own = own.get_or_insert_with(|| {
        if let Err(error) = set_child_subreaper(Some(getpid())) {
            tracing::warn!(
                "Processes that leave a child's process group may outlive the node: {error}"
            );
        }
        Own {
            started: HashSet::new(),
            foreign: children().into_iter().collect(),
            looked: Instant::now(),
        }
    });
    let child = command.spawn()?;
    own.started.insert(Pid::from_child(&child));
    Ok(child)
}

/// Reaps one of these processes, by `wait`.
pub(super) fn let_go<T>(id: Pid, wait: impl FnOnce() -> T) -> T {
    let mut own = lock();
    let outcome = wait();
    if let Some(own) = own.as_mut() {
        own.started.remove(&id);
    }
    outcome
}

/// Kills the orphans of an ended child, in a limited number of rounds.
pub(super) async fn end(group: Pid, mark: &str) {
    for _ in 0..ROUNDS_MAX {
        let is_killed = kill(Some(mark));
        // The group's members are dying, and leave their children behind.
        if !is_killed && test_kill_process_group(group).is_err() {
            return;
        }
        tokio::time::sleep(BETWEEN_ROUNDS).await;
    }
}

/// Kills all orphans.
pub(super) fn end_all() {
    for _ in 0..ROUNDS_MAX {
        if !kill(None) {
            return;
        }
        std::thread::sleep(BETWEEN_ROUNDS);
    }
}

/// Reaps ended orphans; called when some child has ended.
pub(super) fn reap() {
    let mut own = lock();
    let Some(own) = own.as_mut() else {
        return;
    };
    // Every child's task calls this, so that most calls find nothing.
    let what = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    let is_any = matches!(waitid(WaitId::All, what), Ok(Some(_)));
    if is_any && own.looked.elapsed() >= BETWEEN_LOOKS {
        own.looked = Instant::now();
        own.left();
    }
}

/// One round. Returns whether any orphan was found.
fn kill(mark: Option<&str>) -> bool {
    let mut own = lock();
    let Some(own) = own.as_mut() else {
        return false;
    };
    let mut is_any = false;
    for id in own.left() {
        if mark.is_none_or(|mark| has(id, mark)) {
            is_any |= kill_process(id, Signal::KILL).is_ok();
        }
    }
    is_any
}

impl Own {
    /// The running orphans; ended ones are reaped.
    fn left(&mut self) -> Vec<Pid> {
        let mut left = children();
        left.retain(|id| {
            if self.started.contains(id) {
                return false;
            }
            match waitpid(Some(*id), WaitOptions::NOHANG) {
                Ok(None) => !self.foreign.contains(id),
                _ => {
                    self.foreign.remove(id);
                    false
                }
            }
        });
        left
    }
}

/// Whether a process has a mark in its environment.
fn has(id: Pid, mark: &str) -> bool {
    let variable = format!("{VARIABLE}={mark}");
    let environment = fs::read(format!("/proc/{id}/environ")).unwrap_or_default();
    environment
        .split(|&byte| byte == 0)
        .any(|entry| entry == variable.as_bytes())
}

/// The children of this process.
fn children() -> Vec<Pid> {
    let own = Pid::as_raw_pid(getpid());
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    processes
        .filter_map(|folder| {
            let id: i32 = folder.file_name().to_str()?.parse().ok()?;
            let stat = fs::read(folder.path().join("stat")).ok()?;
            (parent(&stat)? == own).then(|| Pid::from_raw(id))?
        })
        .collect()
}

/// `4711 (any name) S PARENT …`: the name may contain anything.
fn parent(stat: &[u8]) -> Option<i32> {
    let end = stat.iter().rposition(|&byte| byte == b')')?;
    let rest = std::str::from_utf8(stat.get(end + 1..)?).ok()?;
    rest.split_ascii_whitespace().nth(1)?.parse().ok()
}

fn lock() -> MutexGuard<'static, Option<Own>> {
    // Every change is one step, so that a panic elsewhere leaves a consistent state.
    OWN.lock().unwrap_or_else(PoisonError::into_inner)
}
