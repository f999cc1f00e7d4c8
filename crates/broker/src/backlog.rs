//! The backlog of a vhost, processed between the turns of its connections.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use tokio::runtime::Handle;

use super::vhost::SharedVhost;

/// Whether a task processes the vhost's backlog, and the thread that runs the task.
pub(super) struct Backlog {
    is_attended: AtomicBool,
    /// The runtime of a serving thread, so that the keeper's timers do not wait for this work.
    thread: Handle,
}

/// Maximum number of steps between two readings of the clock.
const STEPS_MAX: u32 = 256;

impl Backlog {
    pub(crate) fn new(thread: Handle) -> Self {
        Self {
            is_attended: AtomicBool::new(false),
            thread,
        }
    }

    /// Claims the backlog: true if no task processes it yet; the caller then starts one. Called under the vhost's lock.
    pub(super) fn is_to_start(&self) -> bool {
        // The cheap load comes first: while a backlog exists, a task usually runs already.
        !self.is_attended.load(Ordering::Relaxed) && !self.is_attended.swap(true, Ordering::Relaxed)
    }

    fn end(&self) {
        self.is_attended.store(false, Ordering::Relaxed);
    }
}

impl SharedVhost {
    /// Spawns a task on a serving thread that processes the backlog until it is empty.
    #[cold]
    pub(super) fn start_work(self: &Arc<Self>) {
        let attendance = Attendance {
            shared: Arc::clone(self),
            is_over: false,
        };
        self.backlog.thread.spawn(attendance.work());
    }
}

/// Marks the backlog as attended while its task lives; dropping it, also with the runtime, clears the mark.
struct Attendance {
    shared: Arc<SharedVhost>,
    is_over: bool,
}

impl Attendance {
    async fn work(mut self) {
        while !self.is_over {
            self.take_turn();
            crosstie_transport::uncork();
            tokio::task::yield_now().await;
        }
    }

    fn take_turn(&mut self) {
        let mut turn = self.shared.turn(Instant::now());
        while turn.work(STEPS_MAX) && !turn.spend() {}
        if !turn.work(0) {
            // Under the lock, so that a caller that adds work from now on starts a new task.
            self.is_over = true;
            self.shared.backlog.end();
        }
        turn.finish();
    }
}

impl Drop for Attendance {
    fn drop(&mut self) {
        if !self.is_over {
            self.shared.backlog.end();
        }
    }
}
