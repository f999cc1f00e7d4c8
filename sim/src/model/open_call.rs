//! The naive model's record of an open call.

use super::queue::NewCall;
use crate::{Name, Sent};

/// An open call.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) caller: Name,
    pub(crate) request: u64,
    pub(crate) callee: Name,
    pub(crate) invocation: u64,
    pub(crate) receive_progress: bool,
    pub(super) disclosed: bool,
    /// The order number of a callee with a bound on its invocations.
    pub(super) slot: Option<u64>,
    pub(super) interrupted: bool,
    /// The next part's INVOCATION, while more parts may come.
    pub(crate) next_part: Option<Sent>,
    pub(super) timeout_ms: u64,
    /// When the callee last gave a sign of life.
    pub(super) since_ms: u64,
    /// The call, for the next callee, while there may be one; and its registration.
    pub(crate) kept: Option<(u64, NewCall)>,
}

impl Call {
    pub(super) fn deadline_ms(&self) -> Option<u64> {
        (self.timeout_ms > 0).then(|| self.since_ms + self.timeout_ms)
    }
}
