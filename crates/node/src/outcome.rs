//! The outcome of a node, and the shutdown that leads to it.

use std::time::Instant;

/// The outcome of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    Orderly,
    /// A worker failed, or had to be killed.
    WithFailure,
    /// It was signalled twice, and did not wait.
    AtOnce,
}

/// A shutdown in progress.
pub(crate) struct Ending {
    pub(crate) since: Instant,
    pub(crate) outcome: Outcome,
    pub(crate) phase: Phase,
    /// The end of a worker has announced the shutdown.
    pub(crate) is_announced: bool,
}

/// The part of a shutdown that is in progress.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    Processes,
    Routers,
    Over,
}

impl Outcome {
    /// The more severe of both outcomes.
    pub(crate) fn worse(self, other: Self) -> Self {
        self.max(other)
    }
}
