//! What the pages tell of the node around the routers: since when it runs, and its workers.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// Shared by the routers of a node; the controller of the node keeps it true.
#[derive(Debug)]
pub struct Overview {
    started: Instant,
    workers: Mutex<Vec<WorkerOverview>>,
}

/// One worker, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerOverview {
    pub id: String,
    /// In the configuration's word.
    pub kind: &'static str,
    pub status: String,
}

impl Default for Overview {
    fn default() -> Self {
        Self {
            started: Instant::now(),
            workers: Mutex::default(),
        }
    }
}

impl Overview {
    /// Has the pages tell of these workers from now on.
    pub fn show(&self, workers: Vec<WorkerOverview>) {
        *self.workers.lock() = workers;
    }

    pub(crate) fn workers(&self) -> Vec<WorkerOverview> {
        self.workers.lock().clone()
    }

    pub(crate) fn uptime(&self) -> Duration {
        self.started.elapsed()
    }
}
