//! Slow calls whose callers request progress messages.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::Incoming;

/// One such call.
pub(super) struct AtWork {
    pub(super) msg_id: String,
    pub(super) queue: String,
    interval: Duration,
    next: Instant,
    is_done: Arc<AtomicBool>,
}

impl AtWork {
    /// If its caller requests progress: the interval is half of its waiting time.
    pub(super) fn of(incoming: &Incoming, is_done: &Arc<AtomicBool>) -> Option<Self> {
        let request = &incoming.request;
        let seconds = request.monitor_timeout_s? / 2.0;
        let interval = Duration::try_from_secs_f64(seconds).ok()?;
        (seconds >= 1.0).then_some(())?;
        Some(Self {
            msg_id: request.msg_id.clone()?,
            queue: request.reply_queue.clone()?,
            interval,
            next: Instant::now() + interval,
            is_done: is_done.clone(),
        })
    }

    pub(super) fn is_done(&self) -> bool {
        self.is_done.load(Ordering::Acquire)
    }

    /// Whether a message is due now. If so, the next one is due an interval later.
    pub(super) fn is_due(&mut self) -> bool {
        let now = Instant::now();
        let is_due = now >= self.next;
        if is_due {
            self.next = now + self.interval;
        }
        is_due
    }
}
