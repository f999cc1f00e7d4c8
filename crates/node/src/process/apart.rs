//! A process that outlives the node: its successor.

use std::io;
use std::process::{Child, Command};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

use super::ended::Ended;
use super::orphans;

/// A started process, which is neither guarded nor ended with the node.
pub(crate) struct Apart {
    id: Pid,
    started: Child,
    ended: Option<Ended>,
}

impl Apart {
    /// Starts it.
    pub(crate) fn start(command: &mut Command) -> io::Result<Self> {
        let started = orphans::start(command)?;
        Ok(Self {
            id: Pid::from_child(&started),
            started,
            ended: None,
        })
    }

    pub(crate) fn id(&self) -> u32 {
        self.started.id()
    }

    /// A function that blocks until the process has ended. The process keeps its id until [`Apart::reap`].
    pub(crate) fn awaiting(&self) -> impl FnOnce() + Send + use<> {
        let id = self.id;
        move || {
            let what = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            while matches!(waitid(WaitId::Pid(id), what), Err(Errno::INTR)) {}
        }
    }

    pub(crate) fn kill(&self) {
        if self.ended.is_none() {
            let _ = kill_process(self.id, Signal::KILL);
        }
    }

    /// The end of a process that has ended.
    pub(crate) fn reap(&mut self) -> Ended {
        if let Some(ended) = self.ended {
            return ended;
        }
        let status = orphans::let_go(self.id, || self.started.wait());
        let ended = status.map_or(Ended::UNKNOWN, Ended::from);
        self.ended = Some(ended);
        ended
    }
}
