//! The threads of a router, for a watchdog.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use crosstie_transport::Workers;

use crate::router::Router;

/// The threads of a router. They do not outlive it.
#[derive(Clone, Debug)]
pub struct Threads {
    worker: String,
    workers: Weak<Workers>,
}

impl Router {
    /// The router's threads.
    pub fn watched_threads(&self) -> Threads {
        Threads {
            worker: self.id().to_owned(),
            workers: Arc::downgrade(&self.workers),
        }
    }
}

impl Threads {
    /// Names the threads that have run nothing for `limit` at `now`; `None` after the router's end. To be asked at
    /// intervals well below the limit.
    pub fn stuck(&self, now: Instant, limit: Duration) -> Option<Vec<String>> {
        let stuck = self.workers.upgrade()?.stuck(now, limit).into_iter();
        let named = stuck.map(|thread| format!("{thread} of worker '{}'", self.worker));
        Some(named.collect())
    }
}
