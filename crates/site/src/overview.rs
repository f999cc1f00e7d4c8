//! The node around the routers, for the pages: its start time and its workers.

use std::time::{Duration, Instant, SystemTime};

use parking_lot::Mutex;

/// Shared by the routers of a node; the node's controller updates it.
#[derive(Debug)]
pub struct Overview {
    started: Instant,
    workers: Mutex<Vec<WorkerOverview>>,
    reload: Mutex<LastReload>,
}

/// The last reload of the configuration.
#[derive(Clone, Copy, Debug)]
pub struct LastReload {
    pub is_applied: bool,
    /// The time of the last one that was applied; the start is one.
    pub applied: SystemTime,
}

/// A worker, for display.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerOverview {
    pub id: String,
    /// The configuration's word for it.
    pub kind: &'static str,
    pub status: String,
    pub is_running: bool,
    pub components: Vec<ComponentOverview>,
    /// Number of component starts and runs that failed.
    pub component_failures: u64,
    /// The worker's own fault.
    pub trouble: Option<String>,
}

/// A component of a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComponentOverview {
    pub id: String,
    /// One of [`COMPONENT_STATES`].
    pub state: &'static str,
    /// Why it is not in its realm.
    pub reason: Option<String>,
}

/// The possible states of a component. A `waiting` one has no session and retries.
pub const COMPONENT_STATES: [&str; 5] = ["starting", "started", "waiting", "stopped", "failed"];

impl WorkerOverview {
    /// One line for each fault of the worker and its components.
    pub fn troubles(&self) -> impl Iterator<Item = String> {
        let id = &self.id;
        let own = self.trouble.iter();
        let own = own.map(move |trouble| format!("Worker '{id}': {trouble}"));
        let components = self.components.iter().filter_map(move |component| {
            let reason = component.reason.as_deref()?;
            let what = match component.state {
                "waiting" => "has no session",
                _ => "has failed",
            };
            let name = &component.id;
            Some(format!(
                "Component '{name}' of worker '{id}' {what}: {reason}"
            ))
        });
        own.chain(components)
    }
}

impl Default for Overview {
    fn default() -> Self {
        Self {
            started: Instant::now(),
            workers: Mutex::default(),
            reload: Mutex::new(LastReload {
                is_applied: true,
                applied: SystemTime::now(),
            }),
        }
    }
}

impl Overview {
    /// Replaces the workers that the pages show.
    pub fn show(&self, workers: Vec<WorkerOverview>) {
        *self.workers.lock() = workers;
    }

    pub fn workers(&self) -> Vec<WorkerOverview> {
        self.workers.lock().clone()
    }

    /// Notes a reload that was applied or refused.
    pub fn note_reload(&self, is_applied: bool) {
        let mut reload = self.reload.lock();
        reload.is_applied = is_applied;
        if is_applied {
            reload.applied = SystemTime::now();
        }
    }

    pub fn last_reload(&self) -> LastReload {
        *self.reload.lock()
    }

    pub fn uptime(&self) -> Duration {
        self.started.elapsed()
    }
}
