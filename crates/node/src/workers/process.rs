//! One worker's child process through all its runs: starts it, listens to it, ends it, and schedules its restarts.
//!
//! The task of a run owns the child. It executes orders, and reports the end of the run to the node's loop.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime};

use crosstie_config::Restart;
use parking_lot::Mutex;
use rustix::process::{Pid, Signal};
use tokio::sync::mpsc;

use super::log::WorkerLog;
use crate::event::{End, Event, Events, Run};
use crate::process::{Backoff, Child, Children, Command, Ended, Line};
use crate::report;

/// A worker's process, running or not.
pub(crate) struct Process {
    /// The worker's name in the log.
    title: &'static str,
    /// The command of the last run.
    command: Option<Command>,
    restart: Restart,
    backoff: Backoff,
    /// The number of the present run, or the last one.
    number: u64,
    running: Option<Running>,
    /// It waits for its next start.
    pub(crate) is_waiting: bool,
    /// It waits until others have started.
    pub(crate) is_queued: bool,
    /// The process id of the present run, or the last one that began.
    last_pid: Option<u32>,
    /// The end of the last run, as text.
    last_end: Option<String>,
    pub(crate) log: Arc<Mutex<WorkerLog>>,
}

struct Running {
    pid: u32,
    /// The process that does the work, if the child started one for it.
    worker_pid: Option<u32>,
    since: Instant,
    since_date: SystemTime,
    orders: mpsc::UnboundedSender<Order>,
    is_ready: bool,
    was_told_to_end: bool,
    was_killed: bool,
}

enum Order {
    Terminate,
    Kill,
}

/// The phase of a worker's process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Starting,
    Started,
    Stopping,
    /// Between two runs.
    Restarting,
    Stopped,
}

/// The judgement of a run's end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Verdict {
    pub(crate) is_success: bool,
    pub(crate) was_ready: bool,
    pub(crate) ran_for: Duration,
    /// As text: `exit code 1`.
    pub(crate) text: String,
}

impl Process {
    pub(crate) fn new(title: &'static str, restart: Restart) -> Self {
        Self {
            title,
            command: None,
            restart,
            backoff: Backoff::default(),
            number: 0,
            running: None,
            is_waiting: false,
            is_queued: false,
            last_pid: None,
            last_end: None,
            log: Arc::default(),
        }
    }

    /// Begins a run. A failure is reported as an event, like any end.
    pub(crate) fn start(
        &mut self,
        worker: &str,
        command: Result<Command, String>,
        children: &Children,
        events: &Events,
    ) {
        self.number = next_number();
        self.is_waiting = false;
        self.is_queued = false;
        let run = self.run(worker);
        let events = events.clone();
        let spawned = command.and_then(|command| {
            let child = self.spawn(&command, children);
            self.command = Some(command);
            child
        });
        match spawned {
            Ok(child) => {
                let (orders, orders_in) = mpsc::unbounded_channel();
                self.last_pid = Some(child.id());
                self.running = Some(Running {
                    pid: child.id(),
                    worker_pid: None,
                    since: Instant::now(),
                    since_date: SystemTime::now(),
                    orders,
                    is_ready: false,
                    was_told_to_end: false,
                    was_killed: false,
                });
                tokio::spawn(async move {
                    let end = End::Ended(attend(child, orders_in).await);
                    // Fails only if the node is gone.
                    let _ = events.send(Event::Ended { run, end });
                });
            }
            Err(error) => {
                self.last_pid = None;
                let end = End::NotStarted(error);
                let _ = events.send(Event::Ended { run, end });
            }
        }
    }

    /// Requests its end; `false` if it does not run.
    pub(crate) fn terminate(&mut self) -> bool {
        let Some(running) = &mut self.running else {
            return false;
        };
        running.was_told_to_end = true;
        // A shell that waits for the worker would end at once and leave it no time.
        let worker = running.worker_pid.filter(|&pid| is_below(pid, running.pid));
        if worker.is_some_and(terminate_process) {
            return true;
        }
        // Fails if the child has ended just now.
        let _ = running.orders.send(Order::Terminate);
        true
    }

    /// Ends it, at once or in order; one that is about to end is not asked again.
    pub(crate) fn ask_to_end(&mut self, kill: bool) {
        if kill {
            self.kill();
        } else if self.phase() != Phase::Stopping {
            self.terminate();
        }
    }

    /// Kills it with all its descendants.
    pub(crate) fn kill(&mut self) -> bool {
        let Some(running) = &mut self.running else {
            return false;
        };
        running.was_told_to_end = true;
        running.was_killed = true;
        let _ = running.orders.send(Order::Kill);
        true
    }

    /// Notes that it is ready.
    pub(crate) fn handle_ready(&mut self) {
        if let Some(running) = &mut self.running {
            running.is_ready = true;
        }
    }

    /// Notes that the process of that id is ready, if it is the child or a descendant.
    pub(crate) fn handle_ready_of(&mut self, pid: u32) -> bool {
        let Some(running) = &mut self.running else {
            return false;
        };
        if pid != running.pid && !is_below(pid, running.pid) {
            return false;
        }
        running.worker_pid = Some(pid).filter(|&pid| pid != running.pid);
        running.is_ready = true;
        true
    }

    /// Notes the end of a run.
    pub(crate) fn handle_ended(&mut self, end: &End) -> Verdict {
        let verdict = self.judge(end);
        self.last_end = Some(verdict.text.clone());
        verdict
    }

    fn judge(&mut self, end: &End) -> Verdict {
        let running = self.running.take();
        let (was_told, was_killed) = running.as_ref().map_or((false, false), |running| {
            (running.was_told_to_end, running.was_killed)
        });
        match end {
            End::NotStarted(error) => Verdict {
                is_success: false,
                was_ready: false,
                ran_for: Duration::ZERO,
                text: error.clone(),
            },
            End::Ended(ended) => {
                let was_ready = running.as_ref().is_some_and(|running| running.is_ready);
                // A process that never became ready did not succeed.
                let was_early = !was_ready && !was_told;
                Verdict {
                    is_success: !was_early && is_success(ended, was_told, was_killed),
                    was_ready,
                    ran_for: running.map_or(Duration::ZERO, |running| running.since.elapsed()),
                    text: match was_early {
                        true => format!("{ended}, before it was ready"),
                        false => ended.to_string(),
                    },
                }
            }
        }
    }

    /// The delay before its next automatic start, after a run with that end.
    pub(crate) fn next_start(&mut self, verdict: &Verdict) -> Option<Duration> {
        let again = match self.restart {
            Restart::Always => true,
            Restart::OnFailed => !verdict.is_success,
            _ => false,
        };
        again.then(|| self.backoff.next_delay(verdict.ran_for))
    }

    /// Replaces the policy for the next end.
    pub(crate) fn set_restart(&mut self, restart: Restart) {
        self.restart = restart;
    }

    /// Number of automatic restarts since it was last healthy.
    pub(crate) fn restarts_in_a_row(&self) -> u32 {
        let running = self.running.as_ref();
        match running.is_some_and(|running| Backoff::was_well(running.since.elapsed())) {
            true => 0,
            false => self.backoff.ends_in_a_row(),
        }
    }

    /// The end of its last run.
    pub(crate) fn last_end(&self) -> Option<&str> {
        self.last_end.as_deref()
    }

    /// The program of the last run.
    pub(crate) fn program(&self) -> Option<&Path> {
        self.command
            .as_ref()
            .map(|command| command.program.as_path())
    }

    pub(crate) fn pid(&self) -> Option<u32> {
        self.running.as_ref().map(|running| running.pid)
    }

    /// The process id of the present run, or the last one.
    pub(crate) fn last_pid(&self) -> Option<u32> {
        self.last_pid
    }

    pub(crate) fn is_running(&self) -> bool {
        self.running.is_some()
    }

    pub(crate) fn started_at(&self) -> Option<SystemTime> {
        self.running.as_ref().map(|running| running.since_date)
    }

    /// The present run, or the last one.
    pub(crate) fn run(&self, worker: &str) -> Run {
        Run {
            worker: worker.to_owned(),
            number: self.number,
        }
    }

    pub(crate) fn phase(&self) -> Phase {
        match &self.running {
            Some(running) if running.was_told_to_end => Phase::Stopping,
            Some(running) if running.is_ready => Phase::Started,
            Some(_) => Phase::Starting,
            None if self.is_queued => Phase::Starting,
            None if self.is_waiting => Phase::Restarting,
            None => Phase::Stopped,
        }
    }

    fn spawn(&self, command: &Command, children: &Children) -> Result<Child, String> {
        let (title, log) = (self.title, Arc::clone(&self.log));
        // Lines arrive when this thread is idle: the child has its id by then.
        let pid = Arc::new(OnceLock::new());
        let pid_of_lines = Arc::clone(&pid);
        let line = move |line: Line| {
            let pid = pid_of_lines.get().copied().unwrap_or_default();
            report::child_line(title, pid, &line);
            log.lock().push(line);
        };
        let child = children
            .spawn(command, line)
            .map_err(|error| error.to_string())?;
        // The only place that sets it.
        let _ = pid.set(child.id());
        Ok(child)
    }
}

/// Run numbers are never reused, not even for a later worker with the same id.
fn next_number() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    LAST.fetch_add(1, Ordering::Relaxed) + 1
}

/// Whether a child ended as it should: by itself with success, or by TERM as requested.
fn is_success(ended: &Ended, was_told: bool, was_killed: bool) -> bool {
    const TERM: i32 = 15;
    let is_obedient = ended.signal == Some(TERM) || ended.code == Some(128 + TERM);
    ended.is_success() || (was_told && !was_killed && is_obedient)
}

/// Whether a process is in the group led by a child, or one of its descendants.
fn is_below(pid: u32, child: u32) -> bool {
    /// Maximum depth of descendants.
    const REMOVES_MAX: usize = 64;
    if parent_and_group(pid).is_some_and(|(_, group)| group == child) {
        return true;
    }
    let parent = |&pid: &u32| parent_and_group(pid).map(|(parent, _)| parent);
    let line = std::iter::successors(Some(pid), parent);
    line.take(REMOVES_MAX).any(|pid| pid == child)
}

/// proc_pid_stat(5): the fourth and fifth field, after a name that may contain anything. A group from outside this PID
/// namespace has the number 0.
fn parent_and_group(pid: u32) -> Option<(u32, u32)> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, after_name) = stat.rsplit_once(')')?;
    let mut fields = after_name.split_whitespace().skip(1);
    let mut number = || fields.next()?.parse().ok();
    Some((number()?, number()?))
}

fn terminate_process(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| rustix::process::kill_process(pid, Signal::TERM).is_ok())
}

/// Time for a child to end after TERM, once its worker is gone.
const ALONE_MAX: Duration = Duration::from_secs(10);

/// Waits for a child's end, and executes orders meanwhile.
async fn attend(mut child: Child, mut orders: mpsc::UnboundedReceiver<Order>) -> Ended {
    loop {
        let order = tokio::select! {
            ended = child.wait() => return ended,
            order = orders.recv() => order,
        };
        match order {
            Some(Order::Terminate) => child.terminate(),
            Some(Order::Kill) => child.kill(),
            // Its worker was removed.
            None => {
                child.terminate();
                let ended = tokio::time::timeout(ALONE_MAX, child.wait()).await;
                if let Ok(ended) = ended {
                    return ended;
                }
                child.kill();
                return child.wait().await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt;

    use super::*;

    fn running(is_ready: bool, was_told_to_end: bool) -> Process {
        let (orders, _) = mpsc::unbounded_channel();
        let mut process = Process::new("Container", Restart::OnFailed);
        process.running = Some(Running {
            pid: std::process::id(),
            worker_pid: None,
            since: Instant::now(),
            since_date: SystemTime::now(),
            orders,
            is_ready,
            was_told_to_end,
            was_killed: false,
        });
        process
    }

    #[test]
    fn an_end_before_readiness_is_a_failure() {
        let check = |is_ready, was_told, expected| {
            let mut process = running(is_ready, was_told);
            let ended = Ended {
                code: Some(0),
                signal: None,
            };
            let verdict = process.handle_ended(&End::Ended(ended));
            assert_eq!(verdict.is_success, expected, "{is_ready} {was_told}");
            assert_eq!(process.next_start(&verdict).is_none(), expected);
        };
        check(false, false, false);
        check(false, true, true);
        check(true, false, true);
        check(true, true, true);
    }

    #[test]
    fn only_the_child_and_its_descendants_may_report_readiness() {
        let mut process = running(false, false);
        assert!(!process.handle_ready_of(1));
        assert!(!process.handle_ready_of(u32::MAX));
        assert_eq!(process.phase(), Phase::Starting);
        let mut child = std::process::Command::new("cat")
            .stdin(std::process::Stdio::piped())
            .process_group(0)
            .spawn()
            .expect("cat");
        assert!(process.handle_ready_of(child.id()));
        assert_eq!(process.phase(), Phase::Started);
        drop(child.stdin.take());
        child.wait().expect("its end");
        assert!(running(false, false).handle_ready_of(std::process::id()));
    }

    #[test]
    fn ends_are_judged_by_the_requests() {
        let check = |code, signal, was_told, was_killed, expected| {
            let ended = Ended { code, signal };
            let told = (was_told, was_killed);
            assert_eq!(
                is_success(&ended, told.0, told.1),
                expected,
                "{ended} {told:?}"
            );
        };
        check(Some(0), None, false, false, true);
        check(Some(0), None, true, true, true);
        check(Some(1), None, false, false, false);
        check(Some(1), None, true, false, false);
        check(Some(143), None, true, false, true);
        check(Some(143), None, false, false, false);
        check(None, Some(15), true, false, true);
        check(None, Some(15), false, false, false);
        check(None, Some(9), true, true, false);
        check(None, Some(9), false, false, false);
        check(None, None, true, false, false);
    }
}
