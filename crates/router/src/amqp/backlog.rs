//! A vhost's backlog, worked off between the turns of its connections.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use tokio::runtime::Handle;

use super::vhost::SharedVhost;

/// Whether somebody works at a vhost's backlog, and on which thread.
pub(super) struct Backlog {
    is_attended: AtomicBool,
    /// A serving thread's. The keeper's timers are not to wait for this.
    thread: Handle,
}

/// Steps at a time: what is done between two looks at the clock.
const STEPS_MAX: u32 = 256;

impl Backlog {
    pub(super) fn new(thread: Handle) -> Self {
        Self {
            is_attended: AtomicBool::new(false),
            thread,
        }
    }

    /// Whether nobody works at it yet; from now on the caller sees to it. Under the vhost's lock.
    pub(super) fn is_to_start(&self) -> bool {
        // Looked at first: mostly somebody does while there is one.
        !self.is_attended.load(Ordering::Relaxed) && !self.is_attended.swap(true, Ordering::Relaxed)
    }

    fn end(&self) {
        self.is_attended.store(false, Ordering::Relaxed);
    }
}

impl SharedVhost {
    /// Has a serving thread work at the backlog until nothing is left.
    #[cold]
    pub(super) fn start_work(self: &Arc<Self>) {
        let attendance = Attendance {
            shared: Arc::clone(self),
            is_over: false,
        };
        self.backlog.thread.spawn(attendance.work());
    }
}

/// That a task works at the backlog; one that its runtime drops does so no more.
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
            // Under the lock: a caller that makes more from now on finds that nobody attends to it.
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
