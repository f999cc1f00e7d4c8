//! Whether every thread still takes turns. A probe is a task that the thread runs between others: a thread that is
//! blocked, or has ended by itself, does not run the probe.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::{Worker, Workers};

/// The last probe of a thread.
#[derive(Debug, Default)]
pub(super) struct Probe(Mutex<Option<Sent>>);

#[derive(Debug)]
struct Sent {
    at: Instant,
    has_run: Arc<AtomicBool>,
}

impl Workers {
    /// The names of threads whose last probe has waited for `limit` at `now`. Sends a probe to every thread that ran the
    /// one before. Calls therefore come at intervals well below the limit.
    pub fn stuck(&self, now: Instant, limit: Duration) -> Vec<String> {
        let mut stuck = Vec::new();
        let mut look = |worker: &Worker| {
            if worker.is_stuck(now, limit) {
                stuck.push(worker.name.clone());
            }
        };
        look(&self.keeper);
        self.workers.iter().for_each(&mut look);
        // A lock that is held means that its threads start or stop, which the next call sees the outcome of.
        for one in [&self.pages, &self.aside] {
            if let Some(worker) = one.try_lock() {
                worker.iter().for_each(&mut look);
            }
        }
        for several in [&self.bulk, &self.web] {
            if let Some(workers) = several.try_lock() {
                workers.iter().for_each(&mut look);
            }
        }
        stuck
    }
}

impl Worker {
    fn is_stuck(&self, now: Instant, limit: Duration) -> bool {
        if self.running.lock().is_none() {
            // It was stopped.
            return false;
        }
        let mut last = self.probe.0.lock();
        if let Some(sent) = &*last
            && !sent.has_run.load(Ordering::Relaxed)
        {
            return now.saturating_duration_since(sent.at) >= limit;
        }
        let has_run = Arc::new(AtomicBool::new(false));
        let run = Arc::clone(&has_run);
        self.handle
            .spawn(async move { run.store(true, Ordering::Relaxed) });
        *last = Some(Sent { at: now, has_run });
        false
    }
}
