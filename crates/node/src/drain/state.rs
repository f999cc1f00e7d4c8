//! The state of a drain.

use std::time::{Duration, Instant};

use crosstie_config::Json;
use serde_json::json;

use crate::management::Reply;

/// A drain of the node, until it is undone.
pub(crate) struct Drain {
    /// Distinguishes it from earlier ones.
    pub(super) number: u64,
    /// Time over which the clients leave.
    pub(super) over: Duration,
    pub(super) phase: Phase,
    /// Number of clients that were there when the listeners closed.
    pub(super) clients: usize,
    /// Callers that wait until the last client has left.
    pub(super) waiting: Vec<Reply>,
}

/// The part of a drain that is in progress.
pub(super) enum Phase {
    /// Load balancers have time to see that the node is not ready.
    Grace,
    Leaving {
        since: Instant,
    },
    Drained,
}

impl Drain {
    /// The answer to its callers.
    pub(super) fn told(&self) -> Json {
        json!({"clients": self.clients})
    }
}
