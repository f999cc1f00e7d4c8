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
    pub is_running: bool,
    pub components: Vec<ComponentOverview>,
    /// Times that one of them could not be started, or failed.
    pub component_failures: u64,
    /// The trouble of the worker itself.
    pub trouble: Option<String>,
}

/// One component of a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComponentOverview {
    pub id: String,
    /// One of [`COMPONENT_STATES`].
    pub state: &'static str,
    /// Why it is not in its realm.
    pub reason: Option<String>,
}

/// The states that a component can be in. One that is `waiting` has no session and tries again.
pub const COMPONENT_STATES: [&str; 5] = ["starting", "started", "waiting", "stopped", "failed"];

impl WorkerOverview {
    /// A line for everything that is wrong with it and its components.
    pub(crate) fn troubles(&self) -> impl Iterator<Item = String> {
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
